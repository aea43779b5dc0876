"""The clipboard through Qt, with every format that lies on it. UI thread only."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QByteArray, QMimeData, QObject
from PySide6.QtGui import QClipboard, QGuiApplication, QImage

KDE_SECRET = "x-kde-passwordManagerHint"
QT_IMAGE = "application/x-qt-image"


def _windows_format(name: str) -> str:
    return f'application/x-qt-windows-mime;value="{name}"'


EXCLUDE = _windows_format("ExcludeClipboardContentFromMonitorProcessing")
IN_HISTORY = _windows_format("CanIncludeInClipboardHistory")
IN_CLOUD = _windows_format("CanUploadToCloudClipboard")
VIEWER_IGNORE = _windows_format("Clipboard Viewer Ignore")
ZERO_DWORD = bytes(4)

# What clipboard histories look for, on every system: KDE's word for "a password manager put this here", and Windows'
# formats.
EXCLUSION_MARKERS: dict[str, bytes] = {
    KDE_SECRET: b"secret",
    EXCLUDE: ZERO_DWORD,
    IN_HISTORY: ZERO_DWORD,
    IN_CLOUD: ZERO_DWORD,
}

# X11 targets that are questions or commands to the owner, not data; asking for DELETE would delete the user's
# selection.
_PROTOCOL_TARGETS = frozenset(
    {"TARGETS", "MULTIPLE", "TIMESTAMP", "SAVE_TARGETS", "DELETE", "INSERT_SELECTION", "INSERT_PROPERTY"}
)
_TEXT_FORMATS = ("text/plain", "text/plain;charset=utf-8", "UTF8_STRING", "STRING", "TEXT", "COMPOUND_TEXT")
_FIRST = ("text/plain", "text/html", "text/uri-list", "image/png", "text/rtf", "application/rtf")

# A slow or hung owner must not stall the UI thread: what has not been copied by then is given up, the rest comes back.
SNAPSHOT_BUDGET_S = 0.4


@dataclass(frozen=True, slots=True)
class ClipboardSnapshot:
    """Everything that lay on the clipboard: bytes by format, and the image where an image has no bytes of its own."""

    formats: dict[str, bytes]
    image: QImage | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was there."""
        return not self.formats and self.image is None


class ReceiptMimeData(QMimeData):
    """Text that tells when it is fetched, marked to stay out of clipboard histories.

    Asking for the list of formats, or for a marker, is not fetching the text; nor is a look by `QtClipboard`.
    """

    def __init__(self, text: str, on_fetched: Callable[[], None] | None) -> None:
        super().__init__()
        self._text = text
        self._on_fetched = on_fetched
        self.is_own_reading = False

    def formats(self) -> list[str]:
        """The text and the markers."""
        return ["text/plain", *EXCLUSION_MARKERS]

    def hasFormat(self, mimetype: str) -> bool:
        """Whether `formats` has it."""
        return mimetype in self.formats()

    def retrieveData(self, mimetype: str, preferred: Any) -> Any:
        """Called by Qt for each reading of the data, by whomever."""
        if mimetype in EXCLUSION_MARKERS:
            return QByteArray(EXCLUSION_MARKERS[mimetype])
        if mimetype not in _TEXT_FORMATS:
            return None
        if self._on_fetched is not None and not self.is_own_reading:
            self._on_fetched()
        return self._text


class QtClipboard(QObject):
    """`app.desktop.protocols.Clipboard` on QClipboard."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._clipboard = QGuiApplication.clipboard()
        self._serial = 0
        self._offered: ReceiptMimeData | None = None
        self._clipboard.dataChanged.connect(self._on_changed)

    def _on_changed(self) -> None:
        self._serial += 1
        if not self._clipboard.ownsClipboard():
            self._offered = None

    def serial(self) -> int:
        """Grows with every change of the clipboard, by whomever."""
        return self._serial

    def text(self) -> str:
        """Plain text, "" where there is none."""
        if self._offered is None:
            return self._clipboard.text(QClipboard.Mode.Clipboard)
        self._offered.is_own_reading = True
        try:
            return self._clipboard.text(QClipboard.Mode.Clipboard)
        finally:
            self._offered.is_own_reading = False

    def primary_text(self) -> str:
        """Plain text of the primary selection (X11), "" elsewhere."""
        if not self._clipboard.supportsSelection():
            return ""
        return self._clipboard.text(QClipboard.Mode.Selection)

    def _content(self) -> QMimeData | None:
        return self._clipboard.mimeData()  # None on some platforms while nothing is there

    def is_secret(self) -> bool:
        """Whether its owner marked the content as a password. What we put there ourselves is no secret to us."""
        if self._offered is not None:
            return False
        mime = self._content()
        if mime is None:
            return False
        formats = set(mime.formats())
        if formats & {EXCLUDE, VIEWER_IGNORE}:
            return True
        if IN_HISTORY in formats and _bytes(mime, IN_HISTORY)[:4] == ZERO_DWORD:
            return True
        return KDE_SECRET in formats and _bytes(mime, KDE_SECRET).strip(b"\0 \n") == b"secret"

    def snapshot(self) -> ClipboardSnapshot:
        """Copies every format. Formats that a slow owner does not deliver in time are left out."""
        mime = self._content()
        if mime is None:
            return ClipboardSnapshot({})
        if self._offered is not None:
            return ClipboardSnapshot({"text/plain": self.text().encode()})
        names = [name for name in mime.formats() if name not in _PROTOCOL_TARGETS]
        names.sort(key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
        deadline = time.monotonic() + SNAPSHOT_BUDGET_S
        copied: dict[str, bytes] = {}
        for name in names:
            if name == QT_IMAGE:
                continue
            copied[name] = _bytes(mime, name)
            if time.monotonic() > deadline:
                break
        image = None
        if mime.hasImage() and not any(name.startswith("image/") and data for name, data in copied.items()):
            image = QImage(mime.imageData())
        return ClipboardSnapshot(copied, image)

    def restore(self, snapshot: ClipboardSnapshot) -> None:
        """Puts a snapshot back."""
        self._offered = None
        if snapshot.is_empty:
            self._clipboard.clear()
            return
        mime = QMimeData()
        for name, data in snapshot.formats.items():
            if name == "text/plain":
                mime.setText(data.decode("utf-8", "replace"))
            else:
                mime.setData(name, QByteArray(data))
        if snapshot.image is not None:
            mime.setImageData(snapshot.image)
        self._clipboard.setMimeData(mime)

    def offer(self, text: str, on_fetched: Callable[[], None] | None = None) -> None:
        """Puts text on the clipboard, marked to stay out of clipboard histories.

        Args:
            on_fetched: called each time another program fetches the text.
        """
        mime = ReceiptMimeData(text, on_fetched)
        self._offered = mime
        self._clipboard.setMimeData(mime)
        self._offered = mime  # setMimeData may have reported the loss of the previous owner in between

    def put(self, text: str) -> None:
        """Puts text on the clipboard as a user's own copy: it stays after the program ends and enters histories."""
        self._offered = None
        self._clipboard.setText(text, QClipboard.Mode.Clipboard)

    def close(self) -> None:
        """To be called before the application ends.

        Qt reads the clipboard's content once more while it is torn down, when Python is no longer there to answer: data
        that is a Python class must be gone by then. Plain data of the same content takes its place.
        """
        if self._offered is None:
            return
        text, self._offered = self._offered._text, None
        mime = QMimeData()
        mime.setText(text)
        for name, data in EXCLUSION_MARKERS.items():
            mime.setData(name, QByteArray(data))
        self._clipboard.setMimeData(mime)


def _bytes(mime: QMimeData, name: str) -> bytes:
    return bytes(mime.data(name).data())
