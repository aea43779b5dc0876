"""Setting up a server: address, key, model; tried before it is used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.qt.look.theme import SPACE_L, SPACE_M, SPACE_S, colors_of, set_styled, style_sheet
from app.qt.remote.badge import warning_colors
from app.qt.settings.controls import Switch
from app.remote.address import RemoteAddress, RemoteAddressError, remote_address
from app.remote.client import RemoteClient
from app.remote.error import RemoteError
from app.remote.key import RemoteKeys
from app.remote.wire import RemoteModel
from app.translation import Translator
from inference.errors import InferenceError

WIDTH_EM = 30


@dataclass(frozen=True, slots=True)
class RemoteChoice:
    """What the dialog was left with."""

    url: str
    model: str
    allows_plain: bool


class RemoteDialog(QDialog):
    """Asks for a server.

    Signals:
        chosen: a RemoteChoice; the key is in its keyring by then.
    """

    chosen = Signal(object)

    def __init__(
        self,
        choice: RemoteChoice,
        keys: RemoteKeys,
        translator: Translator,
        post_call: Callable[[Callable[[], object]], None],
        parent: QWidget | None = None,
    ) -> None:
        """Shows what is set up.

        Args:
            post_call: runs a function on the UI thread.
        """
        super().__init__(parent)
        self._keys, self._translator, self._post_call = keys, translator, post_call
        self._probe: RemoteClient | None = None
        self._is_open = True
        self._key_is_touched = False
        tr = translator.tr
        self.setWindowTitle(tr("Use a server"))
        self.setObjectName("page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.warning = _words(
            "↗ " + tr("Text leaves this machine: every text that you run an action on is sent there.")
        )
        self.url = QLineEdit(choice.url)
        self.url.setPlaceholderText("http://localhost:11434")
        self.key = QLineEdit()
        self.key.setEchoMode(QLineEdit.EchoMode.Password)
        self.key.setPlaceholderText(tr("Empty where the server wants none"))
        self.model = QComboBox()
        self.model.setEditable(True)
        self.model.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.model.setCurrentText(choice.model)
        self.plain = Switch()
        self.plain.setAccessibleName(tr("Allow unencrypted connections"))
        self.plain.setToolTip(tr("Everyone on the way could read your text."))
        self.plain.setChecked(choice.allows_plain)
        self.result_line = _words()
        self.try_button = QPushButton(tr("Try it"))
        self.use_button = QPushButton(tr("Use it"))
        self.use_button.setProperty("role", "primary")
        self.use_button.setDefault(True)
        self.cancel_button = QPushButton(tr("Cancel"))
        self._lay_out()
        self._connect()
        self.setMinimumWidth(WIDTH_EM * self.fontMetrics().height())
        self._apply_theme()
        self._load_key(choice.url)

    def _lay_out(self) -> None:
        tr = self._translator.tr
        form = QFormLayout()
        form.setSpacing(SPACE_M)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field in ((tr("Address"), self.url), (tr("Key"), self.key), (tr("Model"), self.model)):
            label = QLabel(title)
            label.setMinimumHeight(field.sizeHint().height())  # so that both stand on one line
            form.addRow(label, field)
            field.setAccessibleName(title)
            if isinstance(field, QComboBox) and (line := field.lineEdit()) is not None:
                line.setAccessibleName(title)
                line.setPlaceholderText(tr("Empty for the server's first"))
        unencrypted = QHBoxLayout()
        unencrypted.setSpacing(SPACE_S)
        unencrypted.addWidget(self.plain)
        unencrypted.addWidget(QLabel(tr("Allow unencrypted connections")), 1)
        form.addRow("", unencrypted)
        servers = _words(
            tr(
                "Any server that speaks OpenAI's protocol: vLLM, SGLang, Ollama, llama.cpp. The key is kept in the "
                "system's keyring."
            )
        )
        servers.setProperty("role", "muted")
        buttons = QHBoxLayout()
        buttons.setSpacing(SPACE_S)
        buttons.addWidget(self.try_button)
        buttons.addStretch()
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.use_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        layout.setSpacing(SPACE_M)
        for widget in (self.warning, servers):
            layout.addWidget(widget)
        layout.addLayout(form)
        layout.addWidget(self.result_line)
        layout.addLayout(buttons)

    def _connect(self) -> None:
        self.key.textEdited.connect(self._on_key_edited)
        self.url.editingFinished.connect(lambda: self._load_key(self.url.text()))
        self.try_button.clicked.connect(self.try_server)
        self.use_button.clicked.connect(self.use)
        self.cancel_button.clicked.connect(self.reject)
        self.finished.connect(self._on_finished)
        self.url.textChanged.connect(lambda: self._tell(""))

    # --- the buttons --------------------------------------------------------------------------------------------

    def try_server(self) -> None:
        """Asks the server for its models, with the key as it is typed."""
        address = self._address()
        if address is None:
            return
        self._end_probe()
        self._tell(self._translator.tr("Asking {host}…", host=address.host))
        key = self.key.text()
        self._probe = RemoteClient(lambda _url: key)
        self._probe.set_address(address)
        self._probe.list_models(lambda answer: self._post_call(lambda: self._on_models(answer)))

    def use(self) -> None:
        """Keeps the key and hands over the rest."""
        address = self._address()
        if address is None:
            return
        choice = RemoteChoice(address.url, address.model, self.plain.isChecked())
        if not self._key_is_touched:
            self._finish(choice, is_kept=True)
            return
        self.use_button.setEnabled(False)
        key, keys = self.key.text(), self._keys

        def keep() -> None:
            is_kept = keys.set(choice.url, key)
            self._post_call(lambda: self._finish(choice, is_kept))

        # A keyring may ask its user to open it.
        threading.Thread(target=keep, name="keyring", daemon=True).start()

    def _finish(self, choice: RemoteChoice, is_kept: bool) -> None:
        if not self._is_open:
            return
        self.use_button.setEnabled(True)
        self._key_is_touched = False
        if not is_kept:
            tr = self._translator.tr
            self._tell(
                tr("There is no keyring here to keep the key. It holds until you quit DeskInfer; then enter it again.")
            )
            self.use_button.setText(tr("Use it all the same"))
            return
        self.chosen.emit(choice)
        self.accept()

    # --- inside -------------------------------------------------------------------------------------------------

    def _address(self) -> RemoteAddress | None:
        try:
            return remote_address(self.url.text(), self.model.currentText(), allows_plain=self.plain.isChecked())
        except RemoteAddressError as error:
            self._tell(self._translator.tr(error.text), is_error=True)
            return None

    def _on_models(self, answer: tuple[RemoteModel, ...] | InferenceError) -> None:
        tr = self._translator.tr
        if not self._is_open:
            return
        if isinstance(answer, InferenceError):
            self._tell(tr(answer.text) if isinstance(answer, RemoteError) else str(answer), is_error=True)
            return
        before = self.model.currentText()
        self.model.clear()
        self.model.addItems([model.id for model in answer])
        self.model.setCurrentText(before if before in [model.id for model in answer] else answer[0].id)
        self._tell("✓ " + tr("The server answers. Models there: {count}.", count=len(answer)))

    def _on_key_edited(self) -> None:
        self._key_is_touched = True

    def _load_key(self, url: str) -> None:
        """Shows the key that is kept for an address, unless one is being typed."""
        if self._key_is_touched or not url.strip():
            return
        try:
            url = remote_address(url, "", allows_plain=True).url
        except RemoteAddressError:
            return
        keys = self._keys

        def look() -> None:
            key = keys.get(url)
            self._post_call(lambda: self._show_key(key))

        threading.Thread(target=look, name="keyring", daemon=True).start()

    def _show_key(self, key: str) -> None:
        if self._is_open and not self._key_is_touched:
            self.key.setText(key)

    def _tell(self, text: str, is_error: bool = False) -> None:
        set_styled(self.result_line, "role", "danger" if is_error else "muted")
        self.result_line.setText(text)
        self.result_line.setVisible(bool(text))

    def _on_finished(self) -> None:
        self._is_open = False
        self._end_probe()

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    def event(self, event: QEvent) -> bool:
        """Follows the desktop between light and dark."""
        if event.type() is QEvent.Type.ApplicationPaletteChange:
            self._apply_theme()
        return super().event(event)

    def _apply_theme(self) -> None:
        colors = colors_of(QGuiApplication.palette())
        self.setStyleSheet(style_sheet(colors))
        text, ground = warning_colors(colors)
        self.warning.setStyleSheet(f"color: {text}; background: {ground}; border-radius: 6px; padding: {SPACE_S}px;")


def _words(text: str = "") -> QLabel:
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    return label
