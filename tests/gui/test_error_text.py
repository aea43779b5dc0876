"""Errors as the user reads them: the kind, the cure, in their language."""

import inspect

import pytest

from app.qt.error_text import error_notice
from app.qt.error_words import translated
from app.settings.registry import setting_registry
from app.translation import Translator
from inference import errors
from inference.errors import (
    BackendUnavailableError,
    ContextOverflowError,
    DownloadError,
    InferenceError,
    OutOfMemoryError,
)

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, InferenceError)]


def _example(kind: type[InferenceError]) -> InferenceError:
    error = kind.__new__(kind)
    Exception.__init__(error, "The value is 3, but the limit is 2. Take a smaller one.")
    error.__dict__.update(backend="cuda", needed_bytes=3 << 30, free_bytes=1 << 30, prompt_tokens=9, context_tokens=4)
    return error


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_kind_of_error_has_a_heading_and_a_text(kind: type[InferenceError], language: str):
    notice = error_notice(_example(kind), Translator(language))
    assert notice.is_error
    assert notice.heading
    assert notice.text
    if language == "zh":
        assert any("\u4e00" <= char <= "\u9fff" for char in notice.heading)
        assert any("\u4e00" <= char <= "\u9fff" for char in notice.text)


def test_english_shows_the_errors_own_words():
    assert error_notice(DownloadError("No network. Connect it."), Translator("en")).text == "No network. Connect it."


def test_chinese_puts_the_cure_before_foreign_words_and_says_whose_they_are():
    text = error_notice(DownloadError("No network."), Translator("zh")).text
    assert text.startswith("请检查网络")
    assert text.endswith("\n引擎的原话：No network.")


def test_chinese_says_what_is_known_in_chinese_alone():
    words = "tiny is being fetched by another process. Wait for it, or stop it, and try again."
    text = error_notice(DownloadError(words), Translator("zh")).text
    assert text == "另一个程序正在下载 tiny。请等它完成，或停止它后重试。"


NO_DRIVER = "no NVIDIA driver was found, and no NVIDIA GPU works without it. If this machine has one, install NVIDIA's"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_backend_that_cannot_work_leads_to_one_that_can(language: str):
    error = BackendUnavailableError("cuda", f"{NO_DRIVER} driver, version 525 or newer")
    why, cure = error_notice(error, Translator(language)).text.split("\n")
    assert why == (str(error) if language == "en" else translated(str(error), Translator("zh")))
    engine = next(setting for setting in setting_registry([]) if setting.key == "engine.backend")
    assert engine.choices["auto"][language] in cure
    assert "doctor" not in cure


@pytest.mark.parametrize("language", ["en", "zh"])
def test_where_no_backend_is_left_the_doctor_tells_more(language: str):
    notice = error_notice(
        BackendUnavailableError("torch", "a part of it cannot be imported (no torch)"), Translator(language)
    )
    assert "doctor" in notice.text.split("\n")[-1]
    assert "no torch" in notice.text


def test_numbers_are_named():
    notice = error_notice(ContextOverflowError(9120, 4096), Translator("zh"))
    assert "9,120" in notice.text
    assert "4,096" in notice.text
    notice = error_notice(OutOfMemoryError(3 << 30, 1 << 30, "Close a program."), Translator("zh"))
    assert "3.00 GB" in notice.text
    assert "1.00 GB" in notice.text
