"""An answer beside its source."""

from pathlib import Path

from app.actions.answer_review import Subject, is_new_text, review
from app.actions.registry import ActionRegistry
from app.language import LANGUAGES, Languages
from app.text.checks import REWRITE_CHECKS
from app.text.word_diff import word_diff

LANGUAGE_PAIR = Languages(LANGUAGES["en"], LANGUAGES["zh"])
ACTIONS = ActionRegistry(user_dir=Path("no-such-folder"))


def test_the_subject_of_an_action():
    subject = Subject.of(ACTIONS.get("rewrite"), "Dear Tom,\r\nhello there", LANGUAGE_PAIR)
    assert subject == Subject("Dear Tom,\nhello there", "changes", True, REWRITE_CHECKS, ("en", "en"))
    assert Subject.of(ACTIONS.get("translate"), "Good morning, Tom", LANGUAGE_PAIR).languages == ("en", "zh")
    assert Subject.of(ACTIONS.get("summarize"), "12.5", LANGUAGE_PAIR).languages == ("", "")


def test_an_answer_that_replaces_is_reviewed():
    subject = Subject.of(ACTIONS.get("rewrite"), "  meet me at 14:30\n", LANGUAGE_PAIR)
    found = review(subject, "Sure, here is the rewritten text:\n\nPlease meet me at 13:30.")
    assert found.text == "  Please meet me at 13:30.\n"
    assert found.payload.before.startswith("Sure")
    assert found.diff is not None
    assert [(change.before, change.after) for change in found.diff.changes][-1][0] == "14:30"
    assert [(loss.text, loss.near) for loss in found.losses] == [("14:30", "13:30")]


def test_an_answer_about_a_text_has_no_changes():
    found = review(Subject.of(ACTIONS.get("summarize"), "We sold 12 cars.\n", LANGUAGE_PAIR), "- 12 cars")
    assert (found.text, found.diff, found.losses) == ("- 12 cars", None, ())
    assert review(Subject.of(ACTIONS.get("rewrite"), "Meet at 3", LANGUAGE_PAIR), "").losses == ()


def test_a_new_text_is_told_from_a_changed_one():
    assert is_new_text("hi bob how are you", word_diff("hi bob how are you", "Greetings, dear Robert."))
    assert not is_new_text("to teh store", word_diff("to teh store", "to the store"))


def test_a_translation_that_left_something_is_flagged_both_ways():
    source = "Ms Lopez comes on Friday.\r\nShe works at Siemens."
    subject = Subject.of(ACTIONS.get("translate"), source, LANGUAGE_PAIR)
    found = review(subject, "Ms Lopez 周五来。\nShe works at Siemens.")
    assert [(loss.kind, loss.near) for loss in found.losses] == [
        ("untranslated", "Ms Lopez"),
        ("untranslated", "She works at Siemens"),
    ]
    assert review(subject, "洛佩兹女士周五来。\n她在 Siemens 工作。").losses == ()
    subject = Subject.of(ACTIONS.get("translate"), "合同原件和公章都要带。", LANGUAGE_PAIR)
    assert [loss.text for loss in review(subject, "Bring the contract and the 公章.").losses] == ["公章"]
