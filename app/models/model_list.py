"""Every model that this machine knows of: the catalog's, what lies in the folder of models, what the user added. Pure.

Nothing is loaded; headers are read once and remembered until a file changes.
"""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from app.remote.address import RemoteAddress, remote_parts
from inference.errors import InferenceError
from inference.store.catalog import CatalogEntry
from inference.store.model_facts import ModelFacts, model_kind, read_facts
from inference.store.model_store import ModelStore, StoredModel
from inference.store.own_models import models_in

_IN_BRACKETS = re.compile(r"\s*\(([^()]*)\)")
_FOR_TESTS = ", for tests"
_QUANTIZATION = re.compile(r"(?:I?Q\d\w*|BF16|F16|F32|w\d.*)")


class Origin(enum.Enum):
    """Where a model of the list comes from; decides what can be done with it."""

    CATALOG = "catalog"
    FOLDER = "folder"
    ADDED = "added"
    REMOTE = "remote"


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One line of the list.

    Attributes:
        id: what an engine loads: a catalog id, a path, or remote:HOST/MODEL.
        path: where it lies; None where it is not here as a whole.
        parameters: 0 where nobody says.
        quantization: as its makers write it, "" where nobody says.
        num_bytes: on the disk, or of the download; 0 where only the hub knows.
        about_bytes: what such a download has about, 0 where nobody can say.
        partial_bytes: that an unfinished download has so far.
        licence_note: what to know before using it.
        min_ram_bytes: advice of the catalog; 0 for none.
        for_tests: too weak for what a person wants of it.
        problem: why it cannot be used, None where it can.
    """

    id: str
    title: str
    origin: Origin
    path: Path | None = None
    parameters: int = 0
    quantization: str = ""
    num_bytes: int = 0
    about_bytes: int = 0
    partial_bytes: int = 0
    licence: str = ""
    licence_note: str = ""
    min_ram_bytes: int = 0
    for_tests: bool = False
    problem: InferenceError | None = None

    @property
    def is_here(self) -> bool:
        """Whether it can be loaded without a download."""
        return self.path is not None or self.origin is Origin.REMOTE

    @property
    def can_be_fetched(self) -> bool:
        """Whether a download would bring it."""
        return self.origin is Origin.CATALOG and self.path is None

    @property
    def can_be_deleted(self) -> bool:
        """Whether its files are the store's, and so ours to delete."""
        return self.origin in (Origin.CATALOG, Origin.FOLDER) and (self.path is not None or self.partial_bytes > 0)


class ModelList:
    """Looks at the disk and remembers what files say of themselves. For one thread at a time."""

    def __init__(self, store: ModelStore) -> None:
        self.store = store
        self._facts: dict[Path, tuple[tuple[int, int], ModelFacts | InferenceError]] = {}

    def models(self, added: Sequence[str] = (), remote: RemoteAddress | None = None) -> tuple[ListedModel, ...]:
        """Everything, each model once: the catalog, the folder's own, the added, the server's.

        Args:
            added: paths of files, models' directories, or folders of models.
        """
        stored = self.store.list()
        found = [_of_catalog(each) for each in stored]
        seen = {_opened(each.path) for each in stored if each.path is not None}
        for origin, paths in ((Origin.FOLDER, self.store.own()), (Origin.ADDED, _expanded(added))):
            for path in paths:
                if (file := _opened(path)) not in seen:
                    seen.add(file)
                    found.append(self._of_path(path, origin))
        if remote is not None:
            found.append(of_remote(remote))
        return tuple(found)

    def _of_path(self, path: Path, origin: Origin) -> ListedModel:
        facts = self._facts_of(path)
        name = path.name.removesuffix(".gguf")
        if isinstance(facts, InferenceError):
            return ListedModel(str(path), name, origin, path, problem=facts)
        return ListedModel(
            id=str(path),
            title=name,
            origin=origin,
            path=path,
            parameters=facts.parameters,
            quantization=facts.quantization,
            num_bytes=facts.num_bytes,
            licence=facts.licence,
        )

    def _facts_of(self, path: Path) -> ModelFacts | InferenceError:
        stamp = _stamp_of(path)
        known = self._facts.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        facts: ModelFacts | InferenceError
        try:
            facts = read_facts(path)
        except InferenceError as error:
            facts = error
        except OSError as error:
            facts = InferenceError(f"{path} cannot be read: {error.strerror or error}. Check its permissions.")
        self._facts[path] = stamp, facts
        return facts


def of_remote(address: RemoteAddress) -> ListedModel:
    """A server's model as a line of the list."""
    host, model = remote_parts(address.id)
    return ListedModel(address.id, model or host, Origin.REMOTE)


def _of_catalog(stored: StoredModel) -> ListedModel:
    entry = stored.entry
    title, quantization = split_title(entry)
    return ListedModel(
        id=entry.id,
        title=title,
        origin=Origin.CATALOG,
        path=stored.path,
        parameters=entry.parameters,
        quantization=quantization,
        num_bytes=stored.num_bytes if stored.path is not None else entry.num_bytes or 0,
        about_bytes=entry.about_bytes,
        partial_bytes=stored.partial_bytes,
        licence=entry.licence,
        licence_note=entry.licence_note,
        min_ram_bytes=entry.min_ram_bytes,
        for_tests=entry.for_tests,
    )


def split_title(entry: CatalogEntry) -> tuple[str, str]:
    """A catalog's title, "Name 1.5B (Q4_K_M)", as name and quantization; the originals are published as BF16.

    That a model is for tests is for the windows to say, in the user's language.
    """
    title = entry.title.removesuffix(_FOR_TESTS) if entry.for_tests else entry.title
    match = _IN_BRACKETS.search(title)
    if match is not None and _QUANTIZATION.fullmatch(match[1]):
        return title[: match.start()] + title[match.end() :], match[1]
    return title, "BF16" if entry.kind == "directory" else ""


def split_paths(text: str) -> tuple[str, ...]:
    """The paths of a setting, which the system's own separator divides, as in PATH."""
    return tuple(part for part in (each.strip() for each in text.split(os.pathsep)) if part and "\0" not in part)


def with_path(text: str, path: str) -> str:
    """The setting with one more path.

    Raises:
        ValueError: the path holds the separator.
    """
    if os.pathsep in path:
        raise ValueError(os.pathsep)
    paths = split_paths(text)
    return text if path in paths else os.pathsep.join((*paths, path))


def without_path(text: str, path: str) -> str:
    """The setting without a path, and without the folder that holds it."""
    gone = {_resolved(Path(path)), _resolved(Path(path).parent)}
    return os.pathsep.join(each for each in split_paths(text) if _resolved(Path(each)) not in gone)


def same_model(first: str, second: str) -> bool:
    """Whether two names an engine may load mean one model."""
    if first == second:
        return True
    return (
        bool(first and second)
        and _is_path(first)
        and _is_path(second)
        and _resolved(Path(first)) == _resolved(Path(second))
    )


def with_names_apart(models: Iterable[ListedModel]) -> tuple[ListedModel, ...]:
    """The models, those of equal titles with their folder's name behind it."""
    listed = tuple(models)
    titles = [model.title for model in listed]
    return tuple(
        replace(model, title=f"{model.title} ({model.path.parent.name})")
        if model.path is not None and titles.count(model.title) > 1 and model.origin is not Origin.CATALOG
        else model
        for model in listed
    )


def _is_path(name: str) -> bool:
    return "/" in name or "\\" in name or name.lower().endswith(".gguf")


def _expanded(added: Sequence[str]) -> list[Path]:
    """The models that paths mean: one itself, or all of a folder. A path with nothing behind it stays, as a problem."""
    found: list[Path] = []
    for text in added:
        path = Path(text)
        with suppress(RuntimeError):  # "~name" of nobody
            path = path.expanduser()
        if model_kind(path) is None and path.is_dir() and (inside := models_in(path)):
            found += inside
        else:
            found.append(path)
    return found


def _opened(path: Path) -> Path:
    """What opening the path opens: of a directory with one .gguf file, that file."""
    resolved = _resolved(path)
    return next(resolved.glob("*.gguf")) if resolved.is_dir() and model_kind(resolved) == "gguf" else resolved


def _resolved(path: Path) -> Path:
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError):
        return path


def _stamp_of(path: Path) -> tuple[int, int]:
    """Changes when a file, or what lies directly in a directory, does."""
    try:
        states = [path.stat()] if path.is_file() else [each.stat() for each in path.iterdir()]
    except OSError:
        return (0, 0)
    return max((state.st_mtime_ns for state in states), default=0), sum(state.st_size for state in states)
