"""The catalog: what it must hold, and which model a machine starts with."""

from __future__ import annotations

import re

import pytest

from inference.store.catalog import HubSource, WheelSource, default_model, load_catalog, parse_catalog

GIB = 1 << 30


def test_every_known_model_is_there() -> None:
    assert set(load_catalog().entries) == {
        "qwen2.5-coder-1.5b-instruct",
        "qwen2.5-coder-0.5b-instruct",
        "smollm2-135m-instruct",
        "qwen2.5-3b-instruct",
        "qwen2.5-7b-instruct",
        "qwen3-4b-instruct-2507",
    }


@pytest.mark.parametrize("entry", load_catalog().entries.values(), ids=lambda entry: entry.id)
def test_every_entry_can_be_fetched_and_verified(entry) -> None:
    assert entry.id == entry.id.lower()
    assert entry.title
    assert entry.licence
    assert entry.parameters > 0
    assert isinstance(entry.sources[0], HubSource)
    assert entry.sources[0].repo.count("/") == 1
    if entry.kind == "directory":
        assert (entry.file, entry.num_bytes, entry.sha256, len(entry.sources)) == ("", None, None, 1)
        return
    assert entry.file.endswith(".gguf")
    assert re.fullmatch("[0-9a-f]{64}", entry.sha256)
    wheels = entry.sources[1]
    assert isinstance(wheels, WheelSource)
    assert sum(part.num_bytes for part in wheels.parts) == entry.num_bytes
    assert all(re.fullmatch("[0-9a-f]{64}", part.wheel_sha256) for part in wheels.parts)
    assert len({part.wheel_sha256 for part in wheels.parts}) == len(wheels.parts)


def test_a_licence_that_forbids_something_says_so() -> None:
    assert "non-commercial" in load_catalog().entries["qwen2.5-3b-instruct"].licence_note
    assert load_catalog().entries["qwen2.5-coder-1.5b-instruct"].licence_note == ""


@pytest.mark.parametrize(
    ("ram_bytes", "model_id"),
    [
        (64 * GIB, "qwen2.5-coder-1.5b-instruct"),
        # A machine sold with 4 GB keeps some for its firmware and graphics.
        (int(3.7 * GIB), "qwen2.5-coder-1.5b-instruct"),
        (3 * GIB, "qwen2.5-coder-0.5b-instruct"),
        (GIB // 2, "qwen2.5-coder-0.5b-instruct"),
    ],
)
def test_the_default_follows_the_memory(ram_bytes: int, model_id: str) -> None:
    assert default_model(ram_bytes) == model_id


CODERS = ("qwen2.5-coder-1.5b-instruct", "qwen2.5-coder-0.5b-instruct")


@pytest.mark.parametrize(
    ("ram_bytes", "model_ids"),
    [
        (4 * GIB, CODERS),
        (8 * GIB, (*CODERS, "qwen2.5-3b-instruct")),
        (GIB * 3 // 2, ("smollm2-135m-instruct",)),  # nothing better fits
        (GIB // 2, ()),
    ],
)
def test_what_is_worth_a_download_suits_the_machine_and_is_no_model_for_tests(
    ram_bytes: int, model_ids: tuple[str, ...]
) -> None:
    assert load_catalog().useful_models(ram_bytes) == model_ids


def test_what_only_the_hub_knows_is_estimated() -> None:
    entry = load_catalog().entries["qwen2.5-3b-instruct"]
    assert entry.num_bytes is None
    assert entry.about_bytes == pytest.approx(6_171_926_992, rel=0.01)  # as the hub states it


MODEL = """
defaults = ["a"]
[[model]]
id = "a"
title = "A"
licence = "MIT"
kind = "gguf"
file = "a.gguf"
parameters = 1
min_ram_bytes = 1
[[model.source]]
kind = "hub"
repo = "o/a"
"""


def test_a_catalog_that_is_wrong_is_refused() -> None:
    assert parse_catalog(MODEL).entries["a"].sources == (HubSource("o/a"),)
    with pytest.raises(ValueError, match="same id twice"):
        parse_catalog(MODEL + MODEL.replace('defaults = ["a"]', ""))
    with pytest.raises(ValueError, match="kind 'ftp'"):
        parse_catalog(MODEL.replace('"hub"', '"ftp"'))
    with pytest.raises(ValueError, match="'directory' without"):
        parse_catalog(MODEL.replace('"gguf"', '"directory"'))
    with pytest.raises(KeyError):
        parse_catalog(MODEL.replace('licence = "MIT"', ""))
