"""The view of an answer: as tall as its text, safe with links and pictures, each paragraph in its own direction."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QTextDocument, QTextImageFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.qt.look.theme import apply_scheme
from app.qt.markdown.view import MarkdownView
from app.translation import Translator
from tests.gui.markdown.test_document import MIXED, rendering

pytestmark = pytest.mark.gui


@pytest.fixture
def view(qtbot: QtBot) -> MarkdownView:
    view = MarkdownView(Translator("en"))
    qtbot.addWidget(view)
    view.resize(400, 50)
    view.show()
    return view


def test_it_is_as_tall_as_its_text(view: MarkdownView):
    view.append_markdown("one")
    low = view.height()
    view.append_markdown("\n\ntwo " * 20)
    assert view.height() > 10 * low
    assert view.verticalScrollBar().maximum() == 0
    tall = view.height()
    view.resize(200, tall)
    assert view.height() >= tall


def test_pictures_and_pages_are_never_loaded(view: MarkdownView):
    view.set_markdown("![cat](https://example.org/cat.png) <img src='https://example.org/dog.png'>")
    assert view.toPlainText() == "[cat] <img src='https://example.org/dog.png'>"
    for format_ in view.document().allFormats():
        assert not format_.hasProperty(QTextImageFormat.Property.ImageName.value)
    kind = QTextDocument.ResourceType.ImageResource.value
    assert view.loadResource(kind, QUrl("file:///etc/hostname")) is None


def test_a_link_is_told_and_not_followed(view: MarkdownView, qtbot: QtBot):
    view.set_markdown("[there](https://example.org/x)")
    place = view.cursorRect(view.textCursor()).center()
    with qtbot.waitSignal(view.link_clicked) as told:
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=place + view.cursorRect().topRight() * 0)
    assert told.args == [QUrl("https://example.org/x")]
    assert view.toPlainText() == "there"


def test_each_paragraph_takes_its_own_direction(view: MarkdownView):
    view.set_markdown("English\n\nمرحبا بالعالم\n\n```\nمرحبا\n```\n\n- עברית")
    directions = []
    line = view.document().begin()
    while line.isValid():
        directions.append(line.blockFormat().layoutDirection() is Qt.LayoutDirection.RightToLeft)
        line = line.next()
    assert directions == [False, True, False, True]


def test_code_gets_a_line_with_its_language(view: MarkdownView):
    view.append_markdown("a\n\n```py")
    view.append_markdown("thon\nx = 1\n```\n\nb\n\n```\ny\n```")
    assert [header.language.text() for header in view._headers] == ["python", ""]
    boxes = [box for _, box in view._code_boxes()]
    assert all(header.geometry().top() == round(box.top()) for header, box in zip(view._headers, boxes, strict=True))
    view.set_markdown("no code")
    assert view._headers == []


def test_copy_takes_the_selection_or_all_of_it_as_it_was_written(view: MarkdownView, qtbot: QtBot):
    view.set_markdown("**a** b\n\nc")
    with qtbot.waitSignal(view.copy_requested) as told:
        QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert told.args == ["**a** b\n\nc"]
    view.selectAll()
    with qtbot.waitSignal(view.copy_requested) as told:
        QTest.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert told.args == ["a b\nc"]


def test_plain_text_is_shown_as_it_is(view: MarkdownView):
    view.set_plain_text("**a**\n# b\n\nc")
    assert view.toPlainText() == "**a**\n# b\nc"


def test_another_palette_writes_the_same_in_other_colours(view: MarkdownView):
    view.set_markdown(MIXED)
    light = rendering(view.document())
    try:
        apply_scheme("dark")
        QApplication.processEvents()
        dark, text = rendering(view.document()), view.toPlainText()
    finally:
        apply_scheme("light")
        QApplication.processEvents()
    assert dark != light
    assert text == view.toPlainText()
    apply_scheme("system")


def test_code_that_comes_first_or_last_has_its_header_and_its_edge(view: MarkdownView):
    for text in ("```python\nx = 1\n```\n", "```python\nx = 1\n```\n\nEnd.", "Begin.\n\n```python\nx = 1\n```\n"):
        view.set_markdown(text)
        QApplication.processEvents()
        [(_, box)] = view._code_boxes()
        assert box.top() >= 0
        assert box.bottom() <= view.height() + 0.5
    view.set_markdown("Words.")
    assert view.document().rootFrame().frameFormat().topMargin() == 0
