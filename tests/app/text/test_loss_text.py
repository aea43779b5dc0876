"""What an answer lost, in words."""

import pytest

from app.text.checks import Loss
from app.text.loss_text import QUOTE_CHARS, grouped, left_out_text, loss_text, quote
from app.translation import Translator


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (Loss("numbers", "14:30", "13:30"), "14:30 → 13:30"),
        (Loss("names", "Maria Lopez"), "Missing: Maria Lopez"),
        (Loss("invented", "", "2027"), "Not in your text: 2027"),
        (Loss("untranslated", "Friday", "Friday"), "Not translated: Friday"),
        (Loss("untranslated", "", "As an AI model I"), "Not translated: As an AI model I"),
        (Loss("line_breaks", "6", "1"), "Line breaks: 6 → 1"),
    ],
)
def test_a_loss_in_a_few_words(loss: Loss, text: str):
    assert str(loss_text(loss)) == text


def test_it_is_told_in_chinese_too():
    tr = Translator("zh").tr
    assert tr(loss_text(Loss("names", "Li"))) != str(loss_text(Loss("names", "Li")))
    assert tr(loss_text(Loss("untranslated", "Li", "Li"))) == "未翻译：Li"
    assert tr(left_out_text("Sure:")) != str(left_out_text("Sure:"))


def test_losses_that_read_the_same_are_one_group_at_the_place_of_the_first():
    losses = [Loss("numbers", "1", "2", (0, 1)), Loss("names", "Li"), Loss("numbers", "1", "2", (8, 9))]
    first, second = grouped(losses)
    assert (str(first.text), first.losses) == ("1 → 2", (losses[0], losses[2]))
    assert (str(second.text), second.losses) == ("Missing: Li", (losses[1],))
    assert grouped([]) == []


def test_a_quotation_is_one_line_and_short():
    assert quote(" two\n  lines ") == "two lines"
    assert quote("a" * QUOTE_CHARS) == "a" * QUOTE_CHARS
    assert quote("a" * 30 + "b" * 30) == "a" * 20 + "…" + "b" * 20
