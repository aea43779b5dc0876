"""The clipboard: every format comes back, secrets are known, receipts are for real readings by others."""

import time

import pytest
from PySide6.QtCore import QByteArray, QMimeData
from PySide6.QtGui import QColor, QGuiApplication, QImage
from pytestqt.qtbot import QtBot

from app.qt.clipboard import EXCLUDE, EXCLUSION_MARKERS, IN_HISTORY, KDE_SECRET, VIEWER_IGNORE, QtClipboard

pytestmark = pytest.mark.gui


@pytest.fixture
def clipboard(qtbot: QtBot):
    QGuiApplication.clipboard().clear()
    clipboard = QtClipboard()
    yield clipboard
    clipboard.close()
    QGuiApplication.clipboard().clear()


def _put(**formats: bytes) -> None:
    mime = QMimeData()
    for name, data in formats.items():
        mime.setData(name, QByteArray(data))
    QGuiApplication.clipboard().setMimeData(mime)


def _image() -> QImage:
    image = QImage(3, 2, QImage.Format.Format_RGB32)
    image.fill(QColor("#123456"))
    image.setPixelColor(2, 1, QColor("#ff8800"))
    return image


def test_every_format_comes_back(clipboard: QtClipboard):
    mime = QMimeData()
    mime.setText("plain ü 中")
    mime.setHtml("<b>plain</b>")
    mime.setData("application/x-private", QByteArray(b"\x00\x01\xff"))
    mime.setImageData(_image())
    QGuiApplication.clipboard().setMimeData(mime)
    snapshot = clipboard.snapshot()
    clipboard.offer("answer")
    assert clipboard.text() == "answer"
    clipboard.restore(snapshot)
    back = QGuiApplication.clipboard().mimeData()
    assert back.text() == "plain ü 中"
    assert back.html() == "<b>plain</b>"
    assert bytes(back.data("application/x-private").data()) == b"\x00\x01\xff"
    assert QImage(back.imageData()) == _image()


def test_encoded_images_come_back_byte_for_byte(clipboard: QtClipboard):
    _put(**{"image/png": b"not decoded, only carried"})
    snapshot = clipboard.snapshot()
    clipboard.offer("answer")
    clipboard.restore(snapshot)
    assert bytes(QGuiApplication.clipboard().mimeData().data("image/png").data()) == b"not decoded, only carried"


def test_an_empty_clipboard_is_empty_again(clipboard: QtClipboard):
    snapshot = clipboard.snapshot()
    assert snapshot.is_empty
    clipboard.offer("answer")
    clipboard.restore(snapshot)
    assert clipboard.text() == ""


def test_questions_to_the_owner_are_no_formats(clipboard: QtClipboard):
    _put(**{"text/plain": b"x", "DELETE": b"", "TARGETS": b"", "application/x-other": b"y"})
    assert set(clipboard.snapshot().formats) == {"text/plain", "application/x-other"}


class SlowData(QMimeData):
    """An owner that takes its time for each format."""

    def formats(self):
        return ["application/x-first", "application/x-second", "text/html", "text/plain"]

    def retrieveData(self, mimetype, preferred):
        time.sleep(0.15)
        return QByteArray(mimetype.encode())


def test_a_slow_owner_does_not_hold_us_and_the_text_comes_first(clipboard: QtClipboard):
    QGuiApplication.clipboard().setMimeData(SlowData())
    formats = list(clipboard.snapshot().formats)
    assert formats == ["text/plain", "text/html", "application/x-first"]


def test_the_serial_grows_with_every_change(clipboard: QtClipboard):
    first = clipboard.serial()
    QGuiApplication.clipboard().setText("a")
    second = clipboard.serial()
    QGuiApplication.clipboard().setText("a")
    assert first < second < clipboard.serial()


@pytest.mark.parametrize(
    ("formats", "is_secret"),
    [
        ({"text/plain": b"x"}, False),
        ({"text/plain": b"x", KDE_SECRET: b"secret"}, True),
        ({"text/plain": b"x", KDE_SECRET: b"public"}, False),
        ({"text/plain": b"x", EXCLUDE: b""}, True),
        ({"text/plain": b"x", VIEWER_IGNORE: b""}, True),
        ({"text/plain": b"x", IN_HISTORY: bytes(4)}, True),
        ({"text/plain": b"x", IN_HISTORY: b"\x01\x00\x00\x00"}, False),
    ],
)
def test_passwords_are_known_by_their_markers(clipboard: QtClipboard, formats: dict[str, bytes], is_secret: bool):
    _put(**formats)
    assert clipboard.is_secret() is is_secret


def test_what_we_offer_is_marked_for_others_and_no_secret_to_us(clipboard: QtClipboard):
    clipboard.offer("answer")
    mime = QGuiApplication.clipboard().mimeData()
    assert {name: bytes(mime.data(name).data()) for name in EXCLUSION_MARKERS} == EXCLUSION_MARKERS
    assert not clipboard.is_secret()


def test_only_a_reading_of_the_text_by_others_is_a_receipt(clipboard: QtClipboard):
    receipts: list[int] = []
    clipboard.offer("answer", lambda: receipts.append(1))
    mime = QGuiApplication.clipboard().mimeData()
    mime.formats()
    mime.hasFormat("text/plain")
    mime.data(KDE_SECRET)
    assert clipboard.text() == "answer"
    assert receipts == []
    assert mime.text() == "answer"
    assert receipts


def test_a_copy_by_the_user_is_plain_and_stays(clipboard: QtClipboard):
    clipboard.offer("answer")
    clipboard.put("kept")
    clipboard.close()
    mime = QGuiApplication.clipboard().mimeData()
    assert (mime.text(), KDE_SECRET in mime.formats()) == ("kept", False)


def test_closing_leaves_plain_data_of_the_same_content(clipboard: QtClipboard):
    clipboard.offer("answer", lambda: pytest.fail("nobody has read it"))
    clipboard.close()
    mime = QGuiApplication.clipboard().mimeData()
    assert type(mime) is QMimeData
    assert mime.text() == "answer"
    assert KDE_SECRET in mime.formats()
