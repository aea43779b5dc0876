"""Which earlier sentences a later part of a translation is shown."""

from __future__ import annotations

from app.text.translation_memory import MOST_PAIRS, Memory, Pair, aligned


def test_lines_and_sentences_are_matched_where_there_are_as_many() -> None:
    assert aligned("One is here. Two is there.\n\nThree.", "一在这里。二在那里。\n三。") == [
        Pair("One is here.", "一在这里。"),
        Pair("Two is there.", "二在那里。"),
        Pair("Three.", "三。"),
    ]


def test_a_line_whose_sentences_do_not_match_is_taken_whole() -> None:
    assert aligned("One. Two.\nThree.", "一二。\n三。") == [Pair("One. Two.", "一二。"), Pair("Three.", "三。")]


def test_what_is_long_or_does_not_match_is_left_out() -> None:
    assert aligned("word " * 100, "词" * 100) == []
    assert aligned("One.\nTwo.\n" + "x " * 200, "一。") == []
    assert aligned("One.", "") == []


def test_the_rarest_shared_terms_win() -> None:
    memory = Memory()
    memory.add("The committee meets.\nThe committee eats.\nThe Frobnicator hums.", "A.\nB.\nC.")
    assert memory.pairs_for("Does the committee own the Frobnicator?")[-1] == Pair("The Frobnicator hums.", "C.")
    assert memory.pairs_for("Nothing of that.") == ()
    assert Memory().pairs_for("Anything") == ()


def test_pairs_are_few_and_different() -> None:
    memory = Memory()
    memory.add("\n".join(f"Alpha number{letter} Beta." for letter in "abcdefgh"), "\n".join("ABCDEFGH"))
    pairs = memory.pairs_for("Alpha Beta numbera numberb numberc")
    assert len(pairs) <= MOST_PAIRS
    assert len(set(pairs)) == len(pairs)


def test_chinese_terms_are_found() -> None:
    memory = Memory()
    memory.add("水泵坏了。\n天气很好。", "The pump is broken.\nThe weather is fine.")
    assert memory.pairs_for("谁来修水泵？") == (Pair("水泵坏了。", "The pump is broken."),)
