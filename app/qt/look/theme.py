"""Measures, colours and the style sheet of our windows, all derived from the desktop's own palette and font."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPalette
from PySide6.QtWidgets import QApplication, QWidget

from app.paths import assets_dir

# One scale of distances for every window, in device-independent pixels.
SPACE_XS, SPACE_S, SPACE_M, SPACE_L = 4, 8, 12, 16
LINE_HEIGHT_EM = 1.5
MIN_CONTRAST = 4.5
# Takes the place of a desktop's accent that is grey, with which the first choice would look like a disabled button.
BRAND_ACCENT = "#5563de"
GREY_BELOW_SATURATION = 0.15


@dataclass(frozen=True, slots=True)
class Colors:
    """What a window is painted with."""

    surface: QColor
    page: QColor
    text: QColor
    muted: QColor
    hairline: QColor
    border: QColor
    accent: QColor
    on_accent: QColor
    danger: QColor
    hover: QColor
    pressed: QColor

    @property
    def is_dark(self) -> bool:
        """Whether light text stands on a dark ground."""
        return self.page.lightnessF() < self.text.lightnessF()


def blend(over: QColor, under: QColor, share: float) -> QColor:
    """`share` of the first colour on the second, opaque."""
    return QColor.fromRgbF(
        over.redF() * share + under.redF() * (1 - share),
        over.greenF() * share + under.greenF() * (1 - share),
        over.blueF() * share + under.blueF() * (1 - share),
    )


def contrast(a: QColor, b: QColor) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2)."""
    low, high = sorted((_luminance(a), _luminance(b)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: QColor) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

    return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF())


def legible(color: QColor, ground: QColor, minimum: float = MIN_CONTRAST) -> QColor:
    """The colour, moved towards black or white until it can be read on its ground."""
    goal = QColor("white") if _luminance(ground) < 0.18 else QColor("black")
    for step in range(21):
        moved = blend(goal, color, step / 20)
        if contrast(moved, ground) >= minimum:
            return moved
    return goal


def colors_of(palette: QPalette) -> Colors:
    """Derives our colours from a palette, so that light, dark and high-contrast desktops are all followed."""
    page = palette.color(QPalette.ColorRole.Base)
    surface = palette.color(QPalette.ColorRole.Window)
    text = palette.color(QPalette.ColorRole.Text)
    accent = palette.color(QPalette.ColorRole.Accent)
    if accent.hslSaturationF() < GREY_BELOW_SATURATION:
        accent = QColor(BRAND_ACCENT)
    accent = legible(accent, page)
    on_accent = max((QColor("white"), QColor("black"), page), key=lambda color: contrast(color, accent))
    return Colors(
        surface=surface,
        page=page,
        text=text,
        muted=legible(blend(text, page, 0.62), page),
        hairline=blend(text, page, 0.12),
        border=blend(text, page, 0.34),
        accent=accent,
        on_accent=on_accent,
        danger=legible(QColor("#c62f3b"), page),
        hover=blend(text, page, 0.07),
        pressed=blend(text, page, 0.14),
    )


def _palette(page: str, surface: str, raised: str, text: str, muted: str, accent: str) -> QPalette:
    palette = QPalette(QColor(raised), QColor(surface))
    role = QPalette.ColorRole
    for each, color in {
        role.Base: page,
        role.AlternateBase: surface,
        role.Window: surface,
        role.Button: raised,
        role.ToolTipBase: page,
        role.Text: text,
        role.WindowText: text,
        role.ButtonText: text,
        role.ToolTipText: text,
        role.PlaceholderText: muted,
        role.Accent: accent,
        role.Highlight: accent,
        role.HighlightedText: "#ffffff",
        role.Link: accent,
    }.items():
        palette.setColor(each, QColor(color))
    for each in (role.Text, role.WindowText, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, each, QColor(muted))
    return palette


def apply_scheme(scheme: str) -> None:
    """Makes every window light or dark, at once.

    Args:
        scheme: "light", "dark", or "system" for what the desktop says.
    """
    wanted = {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}.get(scheme, Qt.ColorScheme.Unknown)
    QApplication.setPalette(QPalette())
    QApplication.styleHints().setColorScheme(wanted)
    if wanted is Qt.ColorScheme.Unknown or colors_of(QApplication.palette()).is_dark is (scheme == "dark"):
        return
    # Desktops without a theme of their own for Qt cannot be asked for the other scheme.
    if scheme == "dark":
        palette = _palette("#1f2023", "#28292d", "#34363b", "#eceded", "#9a9da3", "#7c8bf0")
    else:
        palette = _palette("#ffffff", "#f3f3f5", "#fbfbfc", "#1c1d20", "#6b6e75", BRAND_ACCENT)
    QApplication.setPalette(palette)


def scaled(font: QFont, factor: float, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
    """The font in another size and weight; works for fonts measured in points and in pixels."""
    result = QFont(font)
    if font.pointSizeF() > 0:
        result.setPointSizeF(font.pointSizeF() * factor)
    else:
        result.setPixelSize(max(1, round(font.pixelSize() * factor)))
    result.setWeight(weight)
    return result


def style_sheet(colors: Colors) -> str:
    """The style sheet of our windows. Roles are told by the dynamic property `role`."""
    c = {name: getattr(colors, name).name() for name in Colors.__slots__}
    icons = assets_dir("icons").as_posix()
    return f"""
    #sheet {{ background: {c["page"]}; border: 1px solid {c["border"]}; }}
    #page, QScrollArea {{ background: {c["page"]}; border: none; }}
    QLabel {{ color: {c["text"]}; background: transparent; }}
    QLabel[role="muted"] {{ color: {c["muted"]}; }}
    QLabel[role="danger"] {{ color: {c["danger"]}; }}
    QLabel[role="accent"] {{ color: {c["accent"]}; }}
    QLabel[role="keys"] {{
        color: {c["text"]}; background: {c["hover"]}; border: 1px solid {c["hairline"]}; border-radius: 4px;
        padding: 1px 6px;
    }}
    QFrame[role="hairline"] {{ background: {c["hairline"]}; border: none; max-height: 1px; min-height: 1px; }}
    QTextEdit, QPlainTextEdit {{
        color: {c["text"]}; background: {c["page"]}; border: none; padding: 0;
        selection-background-color: {c["accent"]}; selection-color: {c["on_accent"]};
    }}
    QPlainTextEdit[role="field"] {{
        border: 1px solid {c["border"]}; border-radius: 6px; padding: {SPACE_S}px;
    }}
    QPlainTextEdit[role="field"]:focus {{ border-color: {c["accent"]}; }}
    QFrame[role="quote"] {{
        background: {c["hover"]}; border: none; border-left: 3px solid {c["border"]};
    }}
    QPushButton {{
        color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; border-radius: 6px;
        padding: {SPACE_XS}px {SPACE_M}px; min-height: 20px; outline: none;
    }}
    QPushButton:hover {{ background: {c["hover"]}; }}
    QPushButton:pressed {{ background: {c["pressed"]}; }}
    QPushButton:focus {{ border: 1px solid {c["accent"]}; }}
    QPushButton:disabled {{ color: {c["muted"]}; border-color: {c["hairline"]}; background: {c["page"]}; }}
    QPushButton[role="primary"]:enabled {{
        color: {c["on_accent"]}; background: {c["accent"]}; border-color: {c["accent"]};
    }}
    QPushButton[role="primary"]:enabled:focus {{ border: 2px solid {c["text"]}; padding: 3px 11px; }}
    QPushButton[role="hotkey"][recording="true"] {{ color: {c["accent"]}; border-color: {c["accent"]}; }}
    QToolButton {{
        border: 1px solid transparent; border-radius: 6px; background: transparent; padding: 3px; outline: none;
    }}
    QToolButton:hover {{ background: {c["hover"]}; }}
    QToolButton:pressed {{ background: {c["pressed"]}; }}
    QToolButton:focus {{ border-color: {c["accent"]}; }}
    QLineEdit, QAbstractSpinBox, QComboBox {{
        color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; border-radius: 6px;
        padding: {SPACE_XS}px {SPACE_S}px; min-height: 20px;
        selection-background-color: {c["accent"]}; selection-color: {c["on_accent"]};
    }}
    QLineEdit:focus, QAbstractSpinBox:focus, QComboBox:focus {{ border-color: {c["accent"]}; }}
    QLineEdit:disabled, QAbstractSpinBox:disabled, QComboBox:disabled {{
        color: {c["muted"]}; border-color: {c["hairline"]};
    }}
    QLineEdit[invalid="true"], QAbstractSpinBox[invalid="true"], QComboBox[invalid="true"] {{
        border-color: {c["danger"]};
    }}
    QComboBox::drop-down {{ border: none; width: 24px; }}
    QComboBox::down-arrow {{ image: url("{icons}/chevron-down.svg"); width: 14px; height: 14px; }}
    QComboBox QLineEdit, QAbstractSpinBox QLineEdit {{ border: none; padding: 0; min-height: 0; }}
    QComboBox QAbstractItemView {{
        color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; outline: none;
        selection-background-color: {c["accent"]}; selection-color: {c["on_accent"]};
    }}
    QAbstractSpinBox::up-button, QAbstractSpinBox::down-button {{
        subcontrol-origin: border; width: 22px; border: none; background: transparent;
    }}
    QAbstractSpinBox::up-button {{ subcontrol-position: top right; margin: 2px 2px 0 0; }}
    QAbstractSpinBox::down-button {{ subcontrol-position: bottom right; margin: 0 2px 2px 0; }}
    QAbstractSpinBox::up-arrow {{ image: url("{icons}/chevron-up.svg"); width: 11px; height: 11px; }}
    QAbstractSpinBox::down-arrow {{ image: url("{icons}/chevron-down.svg"); width: 11px; height: 11px; }}
    QListWidget[role="pages"] {{ background: {c["surface"]}; border: none; outline: none; padding: 0; }}
    QListWidget[role="pages"]::item {{
        color: {c["text"]}; border: 1px solid transparent; border-radius: 6px; padding: 6px {SPACE_S}px;
    }}
    QListWidget[role="pages"]::item:hover {{ background: {c["hover"]}; }}
    QListWidget[role="pages"]::item:selected {{ background: {c["pressed"]}; color: {c["text"]}; }}
    QListWidget[role="pages"]:disabled::item {{ color: {c["muted"]}; background: transparent; }}
    QListWidget[role="pages"]::item:selected:focus {{ border-color: {c["accent"]}; }}
    QWidget[role="side"] {{ background: {c["surface"]}; }}
    QPushButton[role="link"] {{
        color: {c["accent"]}; border: 1px solid transparent; background: transparent; padding: {SPACE_XS}px;
        text-align: left;
    }}
    QPushButton[role="link"]:hover {{ background: {c["hover"]}; }}
    QPushButton[role="link"]:focus {{ border-color: {c["accent"]}; }}
    QToolButton[role="entry"] {{
        color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; padding: 1px {SPACE_S}px;
    }}
    QToolButton[role="entry"]:hover {{ background: {c["hover"]}; }}
    QToolButton[role="entry"]:focus {{ border-color: {c["accent"]}; }}
    QToolButton[role="tab"] {{ color: {c["muted"]}; padding: 2px {SPACE_XS}px; }}
    QToolButton[role="tab"]:disabled {{ color: {c["border"]}; }}
    QToolButton[role="tab"]:checked {{ color: {c["text"]}; background: {c["pressed"]}; }}
    QToolButton[role="tab"]:focus {{ border-color: {c["accent"]}; }}
    QToolButton::menu-indicator {{ image: none; }}
    QProgressBar {{ background: {c["hairline"]}; border: none; max-height: 3px; min-height: 3px; }}
    QProgressBar::chunk {{ background: {c["accent"]}; }}
    QScrollBar:vertical {{ background: transparent; width: 10px; margin: 0; }}
    QScrollBar::handle:vertical {{
        background: {c["border"]}; border-radius: 3px; min-height: 28px; margin: 0 0 0 4px;
    }}
    QScrollBar[idle="true"]::handle:vertical {{ background: transparent; }}
    QScrollBar::handle:vertical:hover {{ background: {c["muted"]}; }}
    QScrollBar::add-line, QScrollBar::sub-line {{ height: 0; width: 0; }}
    QScrollBar::add-page, QScrollBar::sub-page {{ background: transparent; }}
    QToolTip {{ color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; padding: 3px; }}
    """


def set_styled(widget: QWidget, name: str, value: str | bool) -> None:
    """Sets a property that the style sheet goes by, and has the widget painted by it."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
