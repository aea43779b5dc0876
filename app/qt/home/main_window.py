"""The home window: model and memory, ways to the other windows, a field for text with the actions, the hotkeys.

It is opened from the tray. Where the desktop has none it stands in for it, says so, and has a button that ends the
program. Closing hides it, and the hotkeys go on; without a tray that is told, once.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QCloseEvent, QFont, QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.actions.action import Action
from app.actions.commands import Command
from app.qt.home.closing import tell_once
from app.qt.hotkeys.binding import HotkeyState, HotkeyStatus
from app.qt.look.flow_layout import FlowLayout
from app.qt.look.icons import app_icon, svg_icon, tray_icon
from app.qt.look.placement import first_size
from app.qt.look.scrolled import ScrolledPage
from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, SPACE_XS, colors_of, scaled, set_styled, style_sheet
from app.qt.memory.feed import MemoryFeed
from app.qt.memory.meter import VramMeter
from app.qt.status import Status
from app.translation import Translator
from inference.request import ModelState

DEFAULT_SIZE = QSize(600, 720)
# A screen of 1366x768 pixels at 150 % leaves a height of some 430 between its panel and a title bar.
MINIMUM_SIZE = QSize(460, 340)
STATE_ICON_PX = 32
LINK_ICON_PX = 18
FIELD_LINES = 4
# Commands that open the other windows, with their icons.
LINKS = {"chat.open": "chat", "models.open": "page-model", "settings.open": "sliders"}
_SIGNS = {
    HotkeyState.REGISTERED: "✓",
    HotkeyState.ASKED: "…",
    HotkeyState.TAKEN: "✗",
    HotkeyState.IMPOSSIBLE: "–",
    HotkeyState.INVALID: "✗",
}


def _label(text: str = "", role: str = "", wraps: bool = True) -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(wraps)
    if role:
        label.setProperty("role", role)
    return label


class _Field(QPlainTextEdit):
    """A few lines where the window is small, all the room that is left where it is large."""

    def sizeHint(self) -> QSize:
        """As little as it may have."""
        return self.minimumSizeHint()

    def minimumSizeHint(self) -> QSize:
        """Room for some lines."""
        return QSize(1, FIELD_LINES * self.fontMetrics().lineSpacing() + 3 * SPACE_S)


def _hairline() -> QFrame:
    line = QFrame()
    line.setProperty("role", "hairline")
    return line


class MainWindow(QWidget):
    """A plain window with everything that the tray offers.

    Signals:
        action_requested: action id and the text of the field.
        command_requested: id of a command that a button stands for.
        hotkeys_retry_requested: the user wants the combinations tried again.
        hidden: the window was closed; the program goes on.
        quit_requested: the program is to end.
    """

    action_requested = Signal(str, str)
    command_requested = Signal(str)
    hotkeys_retry_requested = Signal()
    hidden = Signal()
    quit_requested = Signal()

    def __init__(self, translator: Translator, feed: MemoryFeed, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
        self.setWindowTitle("DeskInfer")
        self.setWindowIcon(app_icon())
        self._translator = translator
        self._action_buttons: list[QPushButton] = []
        self._link_buttons: dict[str, QPushButton] = {}
        self.meter = VramMeter(feed, translator, compact=True)
        self._build()
        self.setMinimumSize(MINIMUM_SIZE)
        self.resize(first_size(DEFAULT_SIZE, self.screen().availableSize()))
        self._apply_theme()
        self.set_status(Status())
        self.set_only_home(False)

    # --- construction -------------------------------------------------------------------------------------------

    def _build(self) -> None:
        tr = self._translator.tr
        self.state_icon = QLabel()
        self.state_icon.setFixedSize(STATE_ICON_PX, STATE_ICON_PX)
        self.state_line = _label()
        self.state_line.setFont(scaled(self.font(), 1.08, QFont.Weight.DemiBold))
        self.served_line = _label(role="muted")
        self.model_button = QPushButton()
        self.model_button.clicked.connect(lambda: self.command_requested.emit(self.model_button.objectName()))
        self.no_tray = _label(
            tr(
                "This desktop shows no tray icons, so this window stands in for the icon. The hotkeys go on when it is "
                "closed; start DeskInfer again to see it."
            ),
            "muted",
        )
        self.quit_button = QPushButton(tr("Quit"))
        self.quit_button.clicked.connect(self.quit_requested)
        self.message = _label(role="danger")
        self.message.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.message.hide()
        self.field = _Field()
        self.field.setProperty("role", "field")
        self.field.setTabChangesFocus(True)
        self.field.setPlaceholderText(tr("Paste or type a text here, then choose an action."))
        self.field.setAccessibleName(tr("Text"))
        self.field.textChanged.connect(self._refresh_buttons)
        self._links = QHBoxLayout()
        self._links.setSpacing(SPACE_S)
        self._actions = FlowLayout(spacing=SPACE_S)
        self._hotkey_grid = QGridLayout()
        self.retry_button = QPushButton(tr("Try again"))
        self.retry_button.setAccessibleName(tr("Try to register the hotkeys again"))
        self.retry_button.clicked.connect(self.hotkeys_retry_requested)
        self._limits = _label(role="muted")
        self._limits.hide()
        self._lay_out()

    def _lay_out(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.state_line)
        words.addWidget(self.served_line)
        state = QHBoxLayout()
        state.setSpacing(SPACE_M)
        state.addWidget(self.state_icon)
        state.addLayout(words, 1)
        state.addWidget(self.model_button)
        without_tray = QHBoxLayout()
        without_tray.setSpacing(SPACE_M)
        without_tray.addWidget(self.no_tray, 1)
        without_tray.addWidget(self.quit_button, 0, Qt.AlignmentFlag.AlignTop)
        page = QWidget()
        page.setObjectName("page")
        layout = QVBoxLayout(page)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        layout.setSpacing(SPACE_M)
        layout.addLayout(state)
        layout.addLayout(without_tray)
        layout.addWidget(self.message)
        layout.addWidget(self.meter)
        layout.addLayout(self._links)
        layout.addWidget(_hairline())
        layout.addWidget(self.field, 1)
        layout.addLayout(self._actions)
        layout.addSpacing(SPACE_XS)
        layout.addWidget(_hairline())
        layout.addWidget(self._hotkey_area())
        self.area = ScrolledPage(page)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.area)

    def _hotkey_area(self) -> QWidget:
        heading = _label(self._translator.tr("Hotkeys"), wraps=False)
        heading.setFont(scaled(self.font(), 1.0, QFont.Weight.DemiBold))
        head = QHBoxLayout()
        head.addWidget(heading, 1)
        head.addWidget(self.retry_button)
        self._hotkey_grid.setHorizontalSpacing(SPACE_M)
        self._hotkey_grid.setVerticalSpacing(SPACE_S)
        self._hotkey_grid.setColumnStretch(3, 1)
        area = QWidget()
        layout = QVBoxLayout(area)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addLayout(head)
        layout.addWidget(self._limits)
        layout.addLayout(self._hotkey_grid)
        return area

    # --- what the application calls -----------------------------------------------------------------------------

    def set_only_home(self, is_only_home: bool) -> None:
        """Whether there is no tray, so that this window is all there is of the program."""
        self._is_only_home = is_only_home
        self.no_tray.setVisible(is_only_home)
        self.quit_button.setVisible(is_only_home)

    def set_status(self, status: Status) -> None:
        """Shows what the engine does."""
        icon = tray_icon(status.tray_state, bool(status.remote_host))
        self.state_icon.setPixmap(icon.pixmap(STATE_ICON_PX, STATE_ICON_PX))
        self.state_line.setText(status.sentence(self._translator))
        # What memory the model takes is the meter's to tell.
        self.served_line.setText(status.served(self._translator))
        self.served_line.setVisible(bool(self.served_line.text()))
        tr, holds = self._translator.tr, status.model_state in (ModelState.LOADING, ModelState.READY)
        command, label = ("model.unload", tr("Free the memory now")) if holds else ("model.load", tr("Load the model"))
        if status.is_missing:
            command, label = "models.open", tr("Get a model…")
        self.model_button.setObjectName(command)
        self.model_button.setText(label)
        set_styled(self.model_button, "role", "primary" if status.is_missing else "")
        self.model_button.setEnabled(status.model_state is not ModelState.UNLOADING)

    def set_commands(self, commands: Sequence[Command]) -> None:
        """Makes a button for each command that opens another window."""
        for command in (command for command in commands if command.id in LINKS):
            button = QPushButton(command.title)
            button.setIconSize(QSize(LINK_ICON_PX, LINK_ICON_PX))
            button.clicked.connect(lambda _checked=False, name=command.id: self.command_requested.emit(name))
            self._links.addWidget(button, 1)
            self._link_buttons[command.id] = button
        self._apply_theme()

    def set_actions(self, actions: Sequence[Action]) -> None:
        """Makes one button for each action."""
        for button in self._action_buttons:
            self._actions.removeWidget(button)
            button.deleteLater()
        self._action_buttons = []
        for action in actions:
            button = QPushButton(action.title(self._translator.language))
            button.setToolTip(action.description(self._translator.language))
            button.clicked.connect(lambda _checked=False, action_id=action.id: self._on_action(action_id))
            self._actions.addWidget(button)
            self._action_buttons.append(button)
        self._refresh_buttons()

    def set_hotkeys(self, statuses: Sequence[HotkeyStatus], limits: Sequence[str] = ()) -> None:
        """Lists the hotkeys with their state.

        Args:
            limits: what is not possible on this desktop, and what to do instead, in the user's language.
        """
        while (item := self._hotkey_grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, status in enumerate(statuses):
            keys = _label(status.hotkey, "keys", wraps=False)
            sentence = self._state_sentence(status)
            if sentence in limits:  # it stands above all of them
                sentence = self._translator.tr("not here")
            state = _label(f"{_SIGNS[status.state]} {sentence}", self._state_role(status))
            self._hotkey_grid.addWidget(_label(status.title, wraps=False), row, 0)
            self._hotkey_grid.addWidget(keys, row, 1, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
            self._hotkey_grid.addWidget(state, row, 3)
        self._limits.setText("\n".join(limits))
        self._limits.setVisible(bool(limits))
        self.retry_button.setVisible(any(status.state is HotkeyState.TAKEN for status in statuses))

    def show_message(self, text: str, is_error: bool = True) -> None:
        """Shows a message until the next one, or until "" clears it."""
        set_styled(self.message, "role", "danger" if is_error else "")
        self.message.setText(f"⚠ {text}" if text and is_error else text)
        self.message.setVisible(bool(text))

    def show_quietly(self) -> None:
        """Shows the window without taking the keyboard from whoever types."""
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.show()

    def bring_to_front(self) -> None:
        """Shows the window, from the taskbar too, and gives it the keyboard."""
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating, False)
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()
        self.field.setFocus()

    # --- events -------------------------------------------------------------------------------------------------

    def _state_sentence(self, status: HotkeyStatus) -> str:
        tr = self._translator.tr
        return tr("works") if status.reason is None else tr(status.reason)

    @staticmethod
    def _state_role(status: HotkeyStatus) -> str:
        return "danger" if status.state in (HotkeyState.TAKEN, HotkeyState.INVALID) else "muted"

    def _refresh_buttons(self) -> None:
        has_text = bool(self.field.toPlainText().strip())
        for button in self._action_buttons:
            button.setEnabled(has_text)

    def _on_action(self, action_id: str) -> None:
        self.action_requested.emit(action_id, self.field.toPlainText())

    def _apply_theme(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        self.setStyleSheet(style_sheet(colors))
        for name, button in self._link_buttons.items():
            button.setIcon(svg_icon(LINKS[name], colors.text))

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange and hasattr(self, "_limits"):
            self._apply_theme()
        return super().event(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Hides the window; the program goes on, which is told where no icon shows it."""
        super().closeEvent(event)
        self.hidden.emit()
        if self._is_only_home:
            tell_once(self, self._translator, self.quit_requested.emit)
