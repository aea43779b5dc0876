"""manifest.json of a checkpoint: what was made from what, and size and sha256 of every file."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.json_file import MIB, read_object
from inference.formats.weight_shapes import check_spec
from inference.models.model_spec import ModelSpec, RopeScaling
from kernels.weights.quant_format import QuantFormat

MANIFEST = "manifest.json"
JOURNAL = "manifest.partial.json"
"""The same, of a checkpoint that is being written: it lists the files that are finished."""

VERSION = 1

_FORMAT = "deskinfer checkpoint"
_MAX_BYTES = 16 * MIB
_STATED_WITHIN = 4096
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file as it was written."""

    num_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What weights come from: a name for people, and one sha256 over all of its files."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a checkpoint holds: of equal recipes the bytes are equal.

    Attributes:
        scheme: what was asked for, for display.
        method: how codes were found.
        formats: of every matrix, by stored name.
        adapter: merged into the weights; None where none.
    """

    spec: ModelSpec
    scheme: str
    method: str
    formats: Mapping[str, str]
    source: Origin
    adapter: Origin | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole document."""

    recipe: Recipe
    files: Mapping[str, ManifestFile]

    def to_json(self) -> dict[str, Any]:
        """What `read_manifest` reads."""
        recipe = self.recipe
        return {
            "format": _FORMAT,
            "version": VERSION,
            "scheme": recipe.scheme,
            "method": recipe.method,
            "source": dataclasses.asdict(recipe.source),
            "adapter": None if recipe.adapter is None else dataclasses.asdict(recipe.adapter),
            "spec": dataclasses.asdict(recipe.spec),
            "formats": dict(recipe.formats),
            "files": {name: {"bytes": file.num_bytes, "sha256": file.sha256} for name, file in self.files.items()},
        }


def is_checkpoint(directory: Path) -> bool:
    """A directory that holds a whole checkpoint or an unfinished one."""
    others = ("model.safetensors", "model.safetensors.index.json")
    if (directory / JOURNAL).is_file():
        return True
    # Another program's directory may have a file of that name.
    return (directory / MANIFEST).is_file() and not any((directory / name).exists() for name in others)


def states_checkpoint(path: Path) -> bool:
    """Whether a manifest, sound or not, says that it is a checkpoint's; other programs have files of that name."""
    try:
        with path.open("rb") as file:
            return _FORMAT.encode() in file.read(_STATED_WITHIN)
    except OSError:
        return False


def read_manifest(directory: Path, name: str = MANIFEST) -> Manifest:
    """The manifest of a checkpoint, every value checked.

    Raises:
        ModelFormatError: unfinished, no manifest of a checkpoint, or one that was tampered with.
        UnsupportedModelError: written by a newer version of the program.
    """
    with made_here():
        return _read(directory, name)


def _read(directory: Path, name: str) -> Manifest:
    path = directory / name
    if name == MANIFEST and not path.exists() and (directory / JOURNAL).exists():
        raise ModelFormatError(
            f"{directory} is a checkpoint that is not finished. Give the same deskinfer quantize command again: it goes"
            " on where it stopped."
        )
    document = read_object(path, _MAX_BYTES)
    version = document.get("version")
    if document.get("format") != _FORMAT or type(version) is not int:
        raise ModelFormatError(f"{path} is no manifest of a checkpoint. {CURE}")
    if version > VERSION:
        raise UnsupportedModelError(
            f"{path} has the version {version}, but this program reads up to {VERSION}. Update DeskInfer, or quantize"
            " the model again."
        )
    return _Reader(document, str(path)).manifest()


CURE = "Quantize the model again."
_OTHER_CURE = re.compile(r"Fetch the (?:file|model) again[^.]*\.$")


@contextlib.contextmanager
def made_here() -> Iterator[None]:
    """What the readers of other formats would fetch again was made on this machine: their cure becomes ours."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(_OTHER_CURE.sub(CURE, str(error))) from error


class _Reader:
    def __init__(self, document: Mapping[str, Any], name: str) -> None:
        self._document = document
        self._name = name

    def manifest(self) -> Manifest:
        formats = self._texts(self._object("formats"), "formats")
        for value in formats.values():
            try:
                QuantFormat.parse(value)
            except ValueError as error:
                raise self._wrong("formats", str(error)) from error
        adapter = self._document.get("adapter")
        recipe = Recipe(
            spec=self._spec(self._object("spec")),
            scheme=self._text(self._document, "scheme"),
            method=self._text(self._document, "method"),
            formats=formats,
            source=self._origin(self._object("source")),
            adapter=None if adapter is None else self._origin(self._object("adapter")),
        )
        files = {name: self._file(name, entry) for name, entry in self._object("files").items()}
        return Manifest(recipe, files)

    def _file(self, name: str, entry: Any) -> ManifestFile:
        # A name with a path in it could reach any file of the machine.
        if not _FILE_NAME.fullmatch(name) or ".." in name:
            raise self._wrong("files", f"{name[:80]!r} is no name of a file in the directory")
        size, sha256 = (entry.get("bytes"), entry.get("sha256")) if isinstance(entry, dict) else (None, None)
        if type(size) is not int or size < 0 or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise self._wrong("files", f"{name!r} has no sound size and sha256")
        return ManifestFile(size, sha256)

    def _origin(self, entry: Mapping[str, Any]) -> Origin:
        return Origin(self._text(entry, "name"), self._text(entry, "sha256"))

    def _spec(self, entry: Mapping[str, Any]) -> ModelSpec:
        hints = get_type_hints(ModelSpec)
        values = dict(entry)
        scaling = values.get("rope_scaling")
        if scaling is not None:
            values["rope_scaling"] = RopeScaling(**self._values(scaling, get_type_hints(RopeScaling), "rope_scaling"))
        factors = values.get("rope_factors", [])
        if not isinstance(factors, list) or not all(type(factor) is float for factor in factors):
            raise self._wrong("spec", "rope_factors must be numbers")
        values["rope_factors"] = tuple(factors)
        plain = {key: kind for key, kind in hints.items() if key not in ("rope_scaling", "rope_factors")}
        self._values({key: value for key, value in values.items() if key in plain}, plain, "spec")
        if set(values) != set(hints):
            raise self._wrong("spec", f"its fields must be {', '.join(hints)}")
        spec = ModelSpec(**values)
        check_spec(spec, self._name)
        return spec

    def _values(self, entry: Any, kinds: Mapping[str, Any], what: str) -> dict[str, Any]:
        """The fields of `entry`, each of its kind."""
        if not isinstance(entry, dict) or set(entry) != set(kinds):
            raise self._wrong(what, f"its fields must be {', '.join(kinds)}")
        for key, kind in kinds.items():
            if type(entry[key]) is not kind:
                raise self._wrong(what, f"{key} = {str(entry[key])[:40]!r} must be of the type {kind.__name__}")
        return entry

    def _object(self, key: str) -> dict[str, Any]:
        value = self._document.get(key)
        if not isinstance(value, dict):
            raise self._wrong(key, "it must be an object")
        return value

    def _text(self, entry: Mapping[str, Any], key: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str) or len(value) > 4_096:
            raise self._wrong(key, "it must be a text")
        return value

    def _texts(self, entry: Mapping[str, Any], what: str) -> dict[str, str]:
        for key in entry:
            self._text(entry, key)
        return dict(entry)

    def _wrong(self, key: str, what: str) -> ModelFormatError:
        return ModelFormatError(f"{self._name} is damaged at {key!r}: {what.removesuffix('.')}. {CURE}")
