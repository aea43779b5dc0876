"""What a document shows depends on the Markdown alone, not on how it arrived."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QTextBlock, QTextCharFormat, QTextCursor, QTextDocument, QTextFormat
from PySide6.QtWidgets import QApplication

from app.qt.look.theme import colors_of
from app.qt.markdown.document import DocumentWriter
from app.qt.markdown.look import Look
from app.text.markdown import Change, MarkdownStream, parse
from tests.app.text.test_markdown import texts

pytestmark = pytest.mark.gui


def new_look() -> Look:
    return Look(QApplication.font(), colors_of(QApplication.palette()))


def _copy(style: QTextFormat) -> QTextFormat:
    """Without the number under which the document keeps it."""
    copy = QTextFormat(style)
    copy.clearProperty(QTextFormat.Property.ObjectIndex.value)
    return copy


def _runs(line: QTextBlock) -> list[tuple[str, QTextFormat]]:
    runs: list[tuple[str, QTextFormat]] = []
    each = line.begin()
    while not each.atEnd():
        text, style = each.fragment().text(), _copy(each.fragment().charFormat())
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        else:
            runs.append((text, style))
        each += 1
    return runs


def rendering(document: QTextDocument) -> list[object]:
    """All that is drawn: letters, their styles and colours, distances, tables."""
    lines: list[object] = []
    line = document.begin()
    while line.isValid():
        colors = [(each.start, each.length, QTextCharFormat(each.format)) for each in line.layout().formats()]
        cursor = QTextCursor(line)
        cell: object = None
        if (table := cursor.currentTable()) is not None:
            place = table.cellAt(cursor)
            cell = (place.row(), place.column(), table.rows(), _copy(table.format()), _copy(place.format()))
        lines.append((_copy(line.blockFormat()), _copy(line.charFormat()), _runs(line), colors, cell))
        line = line.next()
    return lines


def whole(text: str, look: Look) -> list[object]:
    document = QTextDocument()
    writer = DocumentWriter(document, look)
    writer.apply(Change(0, parse(text)))
    writer.finish()
    return rendering(document)


def streamed(pieces: list[str], look: Look) -> list[object]:
    document, stream = QTextDocument(), MarkdownStream()
    writer = DocumentWriter(document, look)
    for piece in pieces:
        writer.apply(stream.append(piece))
    writer.finish()
    return rendering(document)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, st.lists(st.integers(0, 200), max_size=12))
def test_any_cut_gives_the_same_document(text: str, places: list[int]):
    look = new_look()
    bounds = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    assert streamed([text[a:b] for a, b in itertools.pairwise(bounds)], look) == whole(text, look)


MIXED = """# Title

A **bold** word, 你好 😀 and `code`.

```python
def f(x: int) -> str:
    return f"😀{x}"  # why
```

| a | b |
|---|--:|
| 1 | *2* |
| 3 | [4](https://e.org) |

1. one
   - two

> مرحبا
"""


def test_letter_by_letter_gives_the_same_document():
    look = new_look()
    assert streamed(list(MIXED), look) == whole(MIXED, look)


def test_the_comparison_sees_colours_and_styles():
    look = new_look()
    assert whole("```python\nx = 1\n```", look) != whole("```text\nx = 1\n```", look)
    assert whole("**a**", look) != whole("a", look)
    assert whole("a", look) != whole("> a", look)


def test_finished_blocks_are_left_alone():
    document, stream = QTextDocument(), MarkdownStream()
    writer = DocumentWriter(document, new_look())
    writer.apply(stream.append("# One\n\nTwo\n\n```py\nx = 1\n```\n\n| a |\n|---|\n| 1 |\n\nThree"))
    document.documentLayout()  # without one nothing is told
    changed: list[int] = []
    document.contentsChange.connect(lambda position, _removed, _added: changed.append(position))
    start = writer.starts[-1]
    writer.apply(stream.append(" more **words** and"))
    writer.apply(stream.append(" a\n\nFour"))
    writer.finish()
    assert changed
    assert min(changed) >= start


def test_colours_of_code_are_those_of_its_tokens():
    document = QTextDocument()
    look = new_look()
    writer = DocumentWriter(document, look)
    writer.apply(Change(0, parse('```python\nx = "😀" # c\n```')))
    writer.finish()
    spans = {(each.start, each.length): QTextCharFormat(each.format) for each in document.begin().layout().formats()}
    assert spans[(9, 3)] == look.roles["comment"]
    assert spans[(5, 2)] == look.roles["string"]


def test_a_new_look_writes_the_same_blocks_again():
    document = QTextDocument()
    look = new_look()
    writer = DocumentWriter(document, look)
    writer.apply(Change(0, parse(MIXED)))
    writer.restyle(look)
    assert rendering(document) == whole(MIXED, look)
