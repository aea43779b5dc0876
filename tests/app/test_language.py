"""Which language a text is in, and which one it is to be translated into."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.language import LANGUAGES, UNKNOWN, Languages, detect, needs_identifier, other_language, script_of

EN, ZH, JA, KO, DE, FR, ES = (LANGUAGES[code] for code in ("en", "zh", "ja", "ko", "de", "fr", "es"))

CHINESE = {
    "short": "好",
    "sentence": "请在周五之前把报告发给我。",
    "with identifiers": "调用 parse_hotkey() 之前先检查 SettingsRegistry.get 的返回值，"
    "否则 load_model 会抛出 ModelNotFoundError。",
    "with a link": "详见 https://example.org/a/very/long/path/to/some/documentation/page.html。",
    "code comment": "# 注意：max_new_tokens 为 None 时，由 context_tokens 决定",
    "mostly English names": "他用 Python、NumPy 和 Qt 写的。",
    "quoting Japanese": "这家店的名字叫さくら，味道非常好，我们每个周末都会去那里吃饭聊天。",
    "fenced code": "运行下面的命令：\n```\npip install something and then start the whole application again\n```",
    "full width": "会议改到下午３点，地点不变。",
}
ENGLISH = {
    "short": "OK",
    "sentence": "Please send me the report by Friday.",
    "with a Chinese name": "We met Mr. Wang (王) in Beijing (北京) and agreed on a date for the next meeting.",
    "code": "def parse(text): return text.split()",
    "only an identifier": "parse_hotkey",
    "only a link": "https://example.org/page",
}


@pytest.mark.parametrize("text", CHINESE.values(), ids=CHINESE.keys())
def test_chinese_stays_chinese(text: str) -> None:
    assert detect(text, (EN, ZH)) is ZH
    assert other_language(text, ZH, EN) is EN
    assert other_language(text, EN, ZH) is EN


@pytest.mark.parametrize("text", ENGLISH.values(), ids=ENGLISH.keys())
def test_english_stays_english(text: str) -> None:
    assert detect(text, (ZH, EN)) is EN
    assert other_language(text, ZH, EN) is ZH
    assert other_language(text, EN, ZH) is ZH


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("金曜日までに報告書を送ってください。", "ja"),
        ("東京都の会議室", "zh"),  # without kana nothing tells Japanese from Chinese
        ("カメラ", "ja"),
        ("금요일까지 보고서를 보내 주세요.", "ko"),
        ("Пришлите мне отчёт до пятницы.", "ru"),
        ("أرسل لي التقرير قبل يوم الجمعة", "ar"),
        ("שלח לי את הדוח עד יום שישי", "he"),
        ("Στείλε μου την αναφορά μέχρι την Παρασκευή", "el"),
        ("शुक्रवार तक रिपोर्ट भेज दें", "hi"),
        ("ส่งรายงานให้ฉันภายในวันศุกร์", "th"),
    ],
)
def test_other_scripts_are_certain(text: str, code: str) -> None:
    assert detect(text, (EN, ZH)) is LANGUAGES[code]
    assert other_language(text, ZH, EN) is (EN if code == "zh" else ZH)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bitte schicken Sie mir den Bericht bis Freitag.", DE),
        ("Please send me the report by Friday.", EN),
        ("Guten Tag", DE),
        ("Das geht", DE),
        ("How are you?", EN),
        ("Termin morgen 10 Uhr", DE),
    ],
)
def test_two_languages_of_one_script_are_told_apart_by_words(text: str, language: object) -> None:
    assert detect(text, (EN, DE)) is language
    assert detect(text, (DE, EN)) is language


def test_without_a_difference_the_first_language_wins() -> None:
    assert detect("Report", (EN, DE)) is EN
    assert detect("Report", (DE, EN)) is DE


def test_without_candidates_all_languages_are_possible() -> None:
    assert detect("La reunión es el martes por la tarde y todos deben venir.") is ES
    assert detect("Merci de m'envoyer le rapport avant vendredi.") is FR
    assert detect("请在周五之前把报告发给我。") is ZH


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "12345", "2026-11-29 18:30", "!?…", "→ 42 %", "😀😀"])
def test_text_without_letters_is_unknown_and_goes_to_the_second_language(text: str) -> None:
    assert detect(text, (EN, ZH)) is UNKNOWN
    assert other_language(text, EN, ZH) is ZH
    assert other_language(text, ZH, EN) is EN


def test_one_han_character_weighs_about_two_letters() -> None:
    assert script_of("我们都 abcde") == "han"
    assert script_of("我们都 abcdefg") == "latin"


def test_a_long_text_is_read_in_part() -> None:
    assert detect("好的。" * 400_000, (EN, ZH)) is ZH


@pytest.mark.parametrize("line", ["x" * 100_000, "a1" * 50_000, "a_" * 50_000, "x@" * 50_000, "(a" * 50_000])
def test_a_line_without_spaces_takes_no_time(line: str) -> None:
    start = time.process_time()
    detect(line, (EN, ZH))
    assert time.process_time() - start < 2.0  # it was a minute


@given(st.text())
def test_every_text_has_an_answer(text: str) -> None:
    language = detect(text, (EN, ZH))
    assert language is UNKNOWN or LANGUAGES[language.code] is language
    assert other_language(text, EN, ZH) in (EN, ZH)


@pytest.mark.parametrize(
    ("first", "second", "locale_name", "expected"),
    [
        ("auto", "en", "zh_CN.UTF-8", (ZH, EN)),
        ("auto", "en", "en_US.UTF-8", (EN, ZH)),
        ("auto", "en", "de_DE", (DE, EN)),
        ("auto", "en", "C.UTF-8", (EN, ZH)),
        ("auto", "en", "", (EN, ZH)),
        ("zh", "zh", "en_US", (ZH, EN)),
        ("ja", "de", "en_US", (JA, DE)),
        ("en", "en", "en_US", (EN, ZH)),
        ("ko", "ko", "en_US", (KO, EN)),
    ],
)
def test_the_users_two_languages(first: str, second: str, locale_name: str, expected: tuple[object, object]) -> None:
    languages = Languages.resolve(first, second, locale_name)
    assert (languages.first, languages.second) == expected


def test_the_identifier_is_needed_for_one_script_only() -> None:
    assert needs_identifier((EN, DE))
    assert not needs_identifier((EN, ZH))


def test_every_language_has_names_for_both_prompts() -> None:
    assert all(language.english and language.chinese and language.script for language in LANGUAGES.values())
    assert len({language.english for language in LANGUAGES.values()}) == len(LANGUAGES)
