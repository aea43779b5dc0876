"""Markdown as blocks: what is told of each, and that cutting the text into pieces changes nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.markdown import Block, MarkdownStream, Run, parse

SNIPPETS = [
    "Some **bold** and *it* words ",
    "`code` ",
    "\n",
    "\n\n",
    "# Head",
    "#",
    "- item ",
    "* other",
    "1. one",
    "7) seven",
    "  - nested",
    "    indented",
    "> quote ",
    ">",
    "```",
    "```python\nx = 1\n",
    "~~~",
    "| a | b |",
    "|---|:-:|",
    "-|-\n",
    "a | b\n",
    "---",
    "===",
    "- [ ] task",
    "<b>html</b>",
    "<!-- c",
    "[x](https://e.org)",
    "[y]: https://e.org",
    "![p](https://e.org/p.png)",
    "https://e.org/a ",
    "\r\n",
    "\r",
    "\t",
    " ",
    "x",
    "\\",
    "مرحبا",
    "你好",
    "\0",
    "-",
    "+\n",
    "***",
    "&amp;",
]
texts = st.lists(st.sampled_from(SNIPPETS), max_size=14).map("".join)


def streamed(pieces: list[str]) -> tuple[Block, ...]:
    """What stands there after all pieces, by the changes alone."""
    stream, blocks = MarkdownStream(), list[Block]()
    for piece in pieces:
        change = stream.append(piece)
        assert change.start <= len(blocks)
        blocks[change.start :] = change.blocks
    return tuple(blocks)


@given(texts, st.lists(st.integers(0, 200), max_size=12))
def test_any_cut_gives_the_blocks_of_the_whole(text: str, places: list[int]):
    bounds = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    assert streamed([text[a:b] for a, b in itertools.pairwise(bounds)]) == parse(text)


@given(texts)
def test_letter_by_letter_gives_the_blocks_of_the_whole(text: str):
    assert streamed(list(text)) == parse(text)


def test_finished_blocks_are_never_told_again():
    stream = MarkdownStream()
    stream.append("# One\n\nTwo\n\n- a\n- b\n- c")
    assert stream.append("\n- d\n").start == 3  # heading, paragraph, one item
    assert stream.append("more").start == 5


def test_the_kinds_of_blocks():
    blocks = parse("# T\n\nText\n\n```py title\na\n\nb\n```\n\n---\n\n| h | i |\n|:-:|--:|\n| **1** | 2 |\n")
    assert [block.kind for block in blocks] == ["heading", "paragraph", "code", "rule", "table"]
    assert (blocks[0].level, blocks[2].code, blocks[2].language) == (1, "a\n\nb", "py")
    assert blocks[4].alignments == ("center", "right")
    assert blocks[4].rows[1] == ((Run("1", bold=True),), (Run("2"),))
    assert blocks[4].text == "h\ti\n1\t2"


def test_lists_and_quotations_are_told_by_their_blocks():
    blocks = parse("> - a\n>   - b\n>\n>   more\n>\n> end\n\n3. x\n4. y\n- [x] done\n- [ ] open\n")
    assert [(block.containers, block.marker, block.text) for block in blocks] == [
        ("ql", "•", "a"),
        ("qll", "◦", "b"),
        ("ql", "", "more"),
        ("q", "", "end"),
        ("l", "3.", "x"),
        ("l", "4.", "y"),
        ("l", "☑", "done"),
        ("l", "☐", "open"),
    ]


def test_an_item_that_begins_with_no_words_keeps_its_marker():
    blocks = parse("- ```\n  x\n  ```\n-\n- > q\n")
    assert [(block.kind, block.containers, block.marker) for block in blocks] == [
        ("paragraph", "l", "•"),
        ("code", "l", ""),
        ("paragraph", "l", "•"),
        ("paragraph", "l", "•"),
        ("paragraph", "lq", ""),
    ]


def test_numbers_go_on_over_finished_items():
    assert [block.marker for block in streamed(list("1. a\n1. b\n1. c\n\n1) d\n"))] == ["1.", "2.", "3.", "1)"]


def test_styles():
    (block,) = parse("**b *bi*** ~~s~~ `c` <u>raw</u>\nnext")
    assert block.runs == (
        Run("b ", bold=True),
        Run("bi", bold=True, italic=True),
        Run(" "),
        Run("s", strike=True),
        Run(" "),
        Run("c", code=True),
        Run(" <u>raw</u>\nnext"),
    )


@pytest.mark.parametrize("url", ["http://a.org", "https://a.org/b?c=d", "mailto:a@b.org"])
def test_links_that_open(url: str):
    assert parse(f"[t]({url})")[0].runs == (Run("t", href=url),)
    assert parse(f"<{url}>")[0].runs[0].href == url


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "javascript:alert(1)", "ftp://a.org", "data:text/html,x", "a.md"]
)
def test_other_links_are_text_as_it_was_written(url: str):
    assert parse(f"[t]({url})")[0].runs == (Run(f"[t]({url})"),)


def test_bare_addresses_are_links_and_file_names_are_not():
    runs = parse("See https://a.org/x, or readme.md.")[0].runs
    assert runs == (Run("See "), Run("https://a.org/x", href="https://a.org/x"), Run(", or readme.md."))


@pytest.mark.parametrize("behind", ["。", "，好", "）", "、x", "”", "’s", "请看", "です", "（见", "——", "…", "한"])
@pytest.mark.parametrize("url", ["https://intra.example.com/c/88", "http://a.org", "https://a.org/x?y=1#z"])
def test_a_bare_address_ends_before_chinese(url: str, behind: str):
    runs = parse(f"见{url}{behind}")[0].runs
    assert runs == (Run("见"), Run(url, href=url), Run(behind))


def test_a_mail_address_ends_before_chinese():
    runs = parse("写到 mailto:a@b.org。再见")[0].runs
    assert (runs[1].href, runs[2]) == ("mailto:a@b.org", Run("。再见"))


def test_a_picture_is_a_link_with_its_words():
    assert parse("![cat](https://a.org/c.png)")[0].runs == (Run("[cat]", href="https://a.org/c.png"),)


def test_html_is_text():
    assert parse("<script>\nalert(1)\n</script>")[0].text == "<script>\nalert(1)\n</script>"
