"""What closing the home window means where no tray icon is left of the program: told once in the user's life."""

from __future__ import annotations

import logging
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from app.paths import welcomed_file
from app.translation import Translator

_log = logging.getLogger(__name__)
MARK_NAME = "told-of-closing"


def tell_once(window: QWidget, translator: Translator, end: Callable[[], None]) -> QMessageBox | None:
    """Says that the program goes on without its window, how to come back to it, and how to end it.

    Args:
        end: ends the program, where the user wants that instead.

    Returns:
        The message, which is open; None where it was told before.
    """
    mark = welcomed_file().with_name(MARK_NAME)
    if mark.exists():
        return None
    try:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    except OSError as error:
        _log.warning("that the program goes on will be told again: %s", type(error).__name__)
    tr = translator.tr
    box = QMessageBox(window)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)
    box.setModal(False)  # a hotkey may bring the popup meanwhile
    box.setIcon(QMessageBox.Icon.Information)
    box.setWindowTitle("DeskInfer")
    box.setText(tr("DeskInfer goes on, and so do its hotkeys."))
    box.setInformativeText(tr("Start DeskInfer again to see its window; “Quit” there ends the program."))
    stay = box.addButton(tr("OK"), QMessageBox.ButtonRole.AcceptRole)
    leave = box.addButton(tr("Quit"), QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    leave.clicked.connect(lambda _checked=False: end())
    box.show()
    return box
