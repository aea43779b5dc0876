"""The word diff: what it yields is exact for every text, and can be read."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text.word_diff import Change, apply, tokens_of, with_edges_of, word_diff

# Few different words, so that texts have much in common; and anything at all.
_WORDS = st.lists(
    st.sampled_from(
        ["a", "the", "cat", "sat", " ", "  ", "\n", "\r\n", ",", ".", "我", "们", "12.5", "é", "👩‍👩‍👧", "ส"]
    ),
    max_size=40,
).map("".join)
_TEXTS = st.one_of(_WORDS, st.text(max_size=60))


def _marked(source: str, answer: str) -> str:
    """The source with [-what was removed-] and {+what came in its place+}."""
    pieces, end = [], 0
    for change in word_diff(source, answer).changes:
        pieces.append(source[end : change.source_span[0]])
        pieces.append(f"[-{change.before}-]" if change.before else "")
        pieces.append(f"{{+{change.after}+}}" if change.after else "")
        end = change.source_span[1]
    return "".join([*pieces, source[end:]])


@given(_TEXTS)
def test_tokens_are_the_text(text: str):
    assert "".join(tokens_of(text)) == text


@given(_TEXTS, _TEXTS)
def test_all_changes_give_the_answer_and_none_the_source(source: str, answer: str):
    changes = word_diff(source, answer).changes
    assert apply(source, changes, range(len(changes))) == answer
    assert apply(source, changes, ()) == source
    assert (changes == ()) == (source == answer)


@given(_TEXTS, _TEXTS, st.data())
def test_any_choice_keeps_the_text_that_is_unchanged(source: str, answer: str, data: st.DataObject):
    changes = word_diff(source, answer).changes
    accepted = data.draw(st.sets(st.integers(0, max(0, len(changes) - 1))))
    rest, end, answer_end = apply(source, changes, accepted), 0, 0
    for index, change in enumerate(changes):
        assert source[slice(*change.source_span)] == change.before != change.after
        assert answer[slice(*change.answer_span)] == change.after
        same = source[end : change.source_span[0]]
        assert answer[answer_end : change.answer_span[0]] == same
        expected = same + (change.after if index in accepted else change.before)
        assert rest.startswith(expected)
        rest = rest[len(expected) :]
        end, answer_end = change.source_span[1], change.answer_span[1]
    assert rest == source[end:] == answer[answer_end:]


@pytest.mark.parametrize(
    ("source", "answer", "marked"),
    [
        ("I has went home.", "I went home.", "I [-has -]went home."),
        ("a very very good day", "a very good day", "a very [-very -]good day"),
        ("a good day", "a very good day", "a {+very +}good day"),
        ("to teh store adn back", "to the store and back", "to [-teh-]{+the+} store [-adn-]{+and+} back"),
        ("Meet at 14:30.", "Meet at 13:30.", "Meet at [-14:30-]{+13:30+}."),
        ("It costs 1,234.50 now", "It costs 1,234.60 now", "It costs [-1,234.50-]{+1,234.60+} now"),
        ("don't go", "do not go", "[-don't-]{+do not+} go"),
        ("我昨天去了商店。", "我昨天去商店。", "我昨天去[-了-]商店。"),
        ("one\ntwo", "one two", "one[-\n-]{+ +}two"),
        ("e\u0301 a", "e a", "[-e\u0301-]{+e+} a"),
    ],
)
def test_changes_are_whole_words(source: str, answer: str, marked: str):
    assert _marked(source, answer) == marked


def test_pieces_too_small_to_read_are_joined():
    assert _marked("he is at my house", "she was at your home") == "[-he is at my house-]{+she was at your home+}"
    assert _marked("he is with my aunt", "she was with your mum") == "[-he is-]{+she was+} with [-my aunt-]{+your mum+}"
    source, answer = "bc the new boss is bad", "since the old manager seems unkind"
    assert _marked(source, answer) == "[-bc the new boss is bad-]{+since the old manager seems unkind+}"
    assert len(word_diff("bad line\nthe bad line", "good line\nthe good line").changes) == 2


def test_a_line_break_is_never_swallowed_by_joining():
    changes = word_diff("old words\nold words", "new things\nnew things").changes
    assert [change.before for change in changes] == ["old words", "old words"]


def test_spans_are_characters():
    assert word_diff("ab cd", "ab xyz").changes == (Change((3, 5), (3, 6), "cd", "xyz"),)


def test_edges_come_back():
    assert with_edges_of("  \tone\n", "two") == "  \ttwo\n"
    assert with_edges_of("one", "\ntwo \n") == "two"
    assert with_edges_of(" \n", "two") == "two"
    assert with_edges_of("one\n", " ") == " "


def test_long_texts_are_compared_word_by_word():
    words = [f"w{number}" if number % 2 else "the" for number in random.Random(7).choices(range(3600), k=20_000)]
    source = " ".join(words)
    for number in range(0, 20_000, 50):
        words[number] = "changed"
    found = word_diff(source, " ".join(words))
    assert len(found.changes) == 400
    assert not found.is_coarse


@pytest.mark.parametrize("end", ["\n", ". "])
def test_texts_that_repeat_themselves_are_compared_line_by_line_or_sentence_by_sentence(end: str):
    source = end.join("the cat has a hat of size " * 5 for _ in range(300))
    found = word_diff(source, source.replace("a hat", "an old hat"))
    assert len(found.changes) == 1500
    assert not found.is_coarse


@pytest.mark.parametrize("letters", ["ab", "abcdefghij"])
def test_long_texts_with_little_in_common_say_that_they_are_not(letters: str):
    source = " ".join(letters[number * number % len(letters)] for number in range(20_000))
    answer = " ".join(letters[number * 7 % 5 % len(letters)] for number in range(20_000))
    start_s = time.thread_time()
    found = word_diff(source, answer)
    assert time.thread_time() - start_s < 2.0  # minutes without a limit
    assert found.is_coarse
    assert apply(source, found.changes, range(len(found.changes))) == answer
