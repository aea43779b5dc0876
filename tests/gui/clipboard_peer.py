"""Another program with a clipboard, for tests on a real display. Reads commands and answers, one line each."""

import hashlib
import sys
import threading

from PySide6.QtCore import QByteArray, QMetaObject, QMimeData, QObject, Qt, Slot
from PySide6.QtGui import QColor, QGuiApplication, QImage

from app.qt.clipboard import ClipboardSnapshot, QtClipboard

FORMATS = {
    "text/html": b"<b>plain</b>",
    "application/x-private": b"\x00\x01\xff",
}


class Peer(QObject):
    """Runs commands on the UI thread."""

    def __init__(self) -> None:
        super().__init__()
        self.clipboard = QGuiApplication.clipboard()
        self.ours = QtClipboard()
        self.receipts = 0
        self.line = ""
        self.snapshot = ClipboardSnapshot({})

    @Slot()
    def run(self) -> None:
        answer = getattr(self, f"do_{self.line}")()
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()

    def do_put(self) -> str:
        mime = QMimeData()
        mime.setText("plain ü 中")
        for name, data in FORMATS.items():
            mime.setData(name, QByteArray(data))
        image = QImage(5, 4, QImage.Format.Format_RGB32)
        image.fill(QColor("#123456"))
        mime.setImageData(image)
        self.clipboard.setMimeData(mime)
        return "put"

    def do_formats(self) -> str:
        return " ".join(sorted(name.replace(" ", "_") for name in self.clipboard.mimeData().formats()))

    def do_text(self) -> str:
        return self.clipboard.text()

    def do_digest(self) -> str:
        mime = self.clipboard.mimeData()
        image = QImage(mime.imageData())
        parts = [mime.text().encode(), *(bytes(mime.data(name).data()) for name in FORMATS)]
        parts.append(f"{image.width()}x{image.height()} {image.pixelColor(2, 2).name()}".encode())
        return hashlib.sha256(b"|".join(parts)).hexdigest()

    def do_snapshot(self) -> str:
        self.snapshot = self.ours.snapshot()
        return "taken"

    def do_offer(self) -> str:
        self.ours.offer("answer", self._on_fetched)
        return "offered"

    def _on_fetched(self) -> None:
        self.receipts += 1

    def do_receipts(self) -> str:
        return str(self.receipts)

    def do_secret(self) -> str:
        return str(self.ours.is_secret())

    def do_restore(self) -> str:
        self.ours.restore(self.snapshot)
        return "restored"

    def do_serial(self) -> str:
        return str(self.ours.serial())

    def do_quit(self) -> str:
        self.ours.close()
        QGuiApplication.quit()
        return "bye"


def main() -> int:
    app = QGuiApplication(sys.argv)
    peer = Peer()

    def read() -> None:
        for line in sys.stdin:
            peer.line = line.strip()
            QMetaObject.invokeMethod(peer, "run", Qt.ConnectionType.BlockingQueuedConnection)
            if peer.line == "quit":
                break

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    code = app.exec()
    # It may still be on its way out of Qt, which must not find the objects gone.
    reader.join(5)
    return code


if __name__ == "__main__":
    sys.exit(main())
