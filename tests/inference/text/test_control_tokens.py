"""Guarding and splitting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.errors import InvalidRequestError, ModelFormatError
from inference.text.control_tokens import ControlToken, ControlTokens, choose_marker, looks_like_control

CHATML = ControlTokens([ControlToken(1, "<|im_start|>"), ControlToken(2, "<|im_end|>")])
OVERLAPPING = ControlTokens(
    [ControlToken(index, text) for index, text in enumerate(("ab", "ba", "aba", "bb", "abcabc", "c" * 3))]
)


def texts_and_ids(tokens: ControlTokens, rendered: str, marker: str = "") -> list[str | int]:
    return [piece if isinstance(piece, str) else piece.token_id for piece in tokens.split(rendered, marker)]


class TestGuard:
    @given(st.text(alphabet="abc", max_size=30))
    def test_no_control_token_is_left_and_the_text_comes_back(self, content: str) -> None:
        guarded = OVERLAPPING.guard(content, "M")
        assert not any(text in guarded for text in OVERLAPPING.by_text)
        assert guarded.replace("M", "") == content
        assert texts_and_ids(OVERLAPPING, guarded, "M") == ([content] if content else [])

    @given(
        st.text(alphabet="abc", max_size=6), st.text(alphabet="abc", max_size=12), st.text(alphabet="abc", max_size=6)
    )
    def test_neighbours_make_no_token_with_a_part_of_the_content(self, left: str, content: str, right: str) -> None:
        # Tokens may lie in the neighbours; none may reach into the content.
        rendered = left + OVERLAPPING.guard(content, "M") + right
        for text in OVERLAPPING.by_text:
            at = rendered.find(text)
            while at >= 0:
                inside_left = at + len(text) <= len(left)
                inside_right = at >= len(rendered) - len(right)
                assert inside_left or inside_right or not content, (rendered, text)
                at = rendered.find(text, at + 1)

    @pytest.mark.parametrize(
        "content", ["", "plain text", "a < b | c > d", "<|im_", "im_end|>", "a<|im_end|>b", "<|im_end|><|im_end|>"]
    )
    def test_examples(self, content: str) -> None:
        guarded = CHATML.guard(content, "\ufdd0")
        assert guarded.replace("\ufdd0", "") == content
        assert texts_and_ids(CHATML, "<|im_start|>" + guarded + "<|im_end|>", "\ufdd0") == [
            1,
            *([content] if content else []),
            2,
        ]

    def test_ordinary_text_is_not_touched(self) -> None:
        content = "No token in here, 你好 <tag> | x"
        assert CHATML.guard(content, "M") is content

    def test_without_control_tokens_nothing_happens(self) -> None:
        none = ControlTokens([])
        assert none.guard("<|im_end|>", "M") == "<|im_end|>"
        assert texts_and_ids(none, "<|im_end|>") == ["<|im_end|>"]


class TestLimits:
    @pytest.mark.parametrize("texts", [[f"<{number}>" for number in range(4097)], ["x" * 129]], ids=["many", "long"])
    def test_what_no_honest_vocabulary_has(self, texts: list[str]) -> None:
        with pytest.raises(ModelFormatError, match="4096 of 128 are the limit"):
            ControlTokens(map(ControlToken, range(len(texts)), texts))

    def test_thousands_are_found_quickly(self) -> None:
        tokens = ControlTokens([ControlToken(number, f"<|reserved_{number}|>") for number in range(4096)])
        content = "<|reserved_" * 2000 + "<|reserved_4095|>"
        assert texts_and_ids(tokens, tokens.guard(content, "M"), "M") == [content]
        assert texts_and_ids(tokens, content + "x") == [content.removesuffix("<|reserved_4095|>"), 4095, "x"]


class TestSplit:
    def test_longest_token_wins(self) -> None:
        tokens = ControlTokens([ControlToken(1, "<e>"), ControlToken(2, "<e><f>")])
        assert texts_and_ids(tokens, "x<e><f>y<e>") == ["x", 2, "y", 1]

    def test_tokens_may_swallow_white_space(self) -> None:
        tokens = ControlTokens([ControlToken(1, "<l>", strips_left=True), ControlToken(2, "<r>", strips_right=True)])
        assert texts_and_ids(tokens, "a \n<l> b\u3000<r>\t\r\nc <r> <l> d") == ["a", 1, " b\u3000", 2, "c ", 2, 1, " d"]

    def test_tokens_of_one_character_stay_text(self) -> None:
        assert texts_and_ids(ControlTokens([ControlToken(1, "x")]), "axb") == ["axb"]


class TestMarker:
    def test_occurs_in_no_text(self) -> None:
        texts = ["\ufdd0\ufdd2", "\ufdd1"]
        assert choose_marker(texts) == "\ufdd3"
        assert choose_marker([]) == "\ufdd0"

    def test_texts_with_all_of_them_are_refused(self) -> None:
        everything = "".join(map(chr, [*range(0xFDD0, 0xFDF0), *range(0x10F800, 0x110000)]))
        with pytest.raises(InvalidRequestError, match="private-use"):
            choose_marker([everything])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("<|im_end|>", True), ("<|x|>", True), ("<||>", False), ("<tool_call>", False), ("<|", False), ("a<|x|>", False)],
)
def test_looks_like_control(text: str, expected: bool) -> None:
    assert looks_like_control(text) is expected
