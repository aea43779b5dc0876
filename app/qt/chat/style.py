"""What the style sheet of the chat has more than that of the other windows."""

from __future__ import annotations

from app.qt.look.theme import SPACE_M, SPACE_S, Colors, blend, style_sheet


def chat_style_sheet(colors: Colors) -> str:
    """The style sheet of the chat window."""
    bubble = blend(colors.accent, colors.page, 0.16 if colors.is_dark else 0.09).name()
    c = {name: getattr(colors, name).name() for name in Colors.__slots__}
    return (
        style_sheet(colors)
        + f"""
    #chat, #main {{ background: {c["page"]}; }}
    #header {{ background: {c["page"]}; border: none; border-bottom: 1px solid {c["hairline"]}; }}
    #sideframe {{ background: {c["surface"]}; border: none; border-right: 1px solid {c["hairline"]}; }}
    #optionsframe {{ background: {c["surface"]}; border: none; border-left: 1px solid {c["hairline"]}; }}
    QFrame[role="bubble"] {{ background: {bubble}; border: none; border-radius: 12px; }}
    QFrame[role="bubble"] QTextEdit {{ background: transparent; }}
    QFrame[role="file"], QLabel[role="file"] {{
        background: {c["hover"]}; border: 1px solid {c["hairline"]}; border-radius: 6px;
    }}
    QLabel[role="file"] {{ padding: 2px {SPACE_S}px; }}
    QFrame[role="file"] QLabel {{ border: none; background: transparent; }}
    #composer {{ background: {c["page"]}; border: 1px solid {c["border"]}; border-radius: 12px; }}
    #composer[focused="true"] {{ border-color: {c["accent"]}; }}
    #composer QPlainTextEdit {{ background: transparent; }}
    QToolButton[role="floating"] {{
        background: {c["page"]}; border: 1px solid {c["border"]}; border-radius: 13px; padding: 4px;
    }}
    QToolButton[role="floating"]:hover {{ background: {c["surface"]}; }}
    QToolButton[role="floating"]:focus {{ border-color: {c["accent"]}; }}
    QToolButton[role="send"] {{ background: {c["accent"]}; border-radius: 8px; padding: 5px; }}
    QToolButton[role="send"]:hover {{ background: {blend(colors.text, colors.accent, 0.15).name()}; }}
    QToolButton[role="send"]:focus {{ border: 1px solid {c["text"]}; }}
    QToolButton[role="send"]:disabled {{ background: {c["hover"]}; }}
    QPushButton[role="card"] {{ text-align: left; padding: {SPACE_M}px; border-color: {c["hairline"]}; }}
    QPushButton[role="card"]:focus {{ border-color: {c["accent"]}; }}
    QAbstractSpinBox QLineEdit {{ border: none; padding: 0; min-height: 0; background: transparent; }}
    QListWidget[role="pages"]::item:focus {{ border-color: {c["accent"]}; }}
    QToolButton::menu-indicator {{ image: none; }}
    QMenu {{ color: {c["text"]}; background: {c["page"]}; border: 1px solid {c["border"]}; padding: 4px; }}
    QMenu::item {{ padding: 5px 18px; border-radius: 4px; }}
    QMenu::item:selected {{ background: {c["pressed"]}; }}
    QMenu::separator {{ height: 1px; background: {c["hairline"]}; margin: 4px 8px; }}
    """
    )
