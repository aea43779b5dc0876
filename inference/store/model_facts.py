"""What a model's files say of it, for people: name, size, bits, licence. Reads headers only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from inference.errors import ModelFormatError, ModelNotFoundError
from inference.formats.checkpoint.manifest import is_checkpoint, read_manifest
from inference.formats.gguf.gguf_file import GgufFile
from inference.formats.huggingface.huggingface import HuggingFaceSource
from inference.formats.model_source import ModelSource
from inference.formats.weight_shapes import weight_shapes

_LICENCE_BYTES = 4096
_LICENCE_CHARACTERS = 60

# Values of general.file_type that files in use have.
_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model says of itself.

    Attributes:
        kind: a .gguf file, one of our own checkpoints, or a Hugging Face directory.
        title: "" where it gives itself no name.
        quantization: of most of its weights: "Q4_K_M", "w4 g128", "BF16".
        licence: "" where its files do not say.
        num_bytes: on the disk.
    """

    kind: Literal["gguf", "checkpoint", "directory"]
    title: str
    parameters: int
    quantization: str
    licence: str
    num_bytes: int


def model_kind(path: Path) -> Literal["gguf", "checkpoint", "directory"] | None:
    """What lies at a path, by names alone; None where it is no model."""
    try:
        if path.is_file():
            return "gguf" if path.suffix.lower() == ".gguf" else None
        if is_checkpoint(path):
            return "checkpoint"
        if (path / "config.json").is_file() and any(path.glob("*.safetensors")):
            return "directory"
        return "gguf" if len(list(path.glob("*.gguf"))) == 1 else None
    except OSError:
        return None


def read_facts(path: Path) -> ModelFacts:
    """What the model at `path` says of itself.

    Raises:
        ModelNotFoundError, ModelFormatError, UnsupportedModelError: it cannot be opened.
    """
    kind = model_kind(path)
    if kind == "gguf":
        return _of_gguf(path if path.is_file() else next(path.glob("*.gguf")))
    if kind == "checkpoint":
        return _of_checkpoint(path)
    if kind == "directory":
        return _of_directory(path)
    if not path.exists():
        raise ModelNotFoundError(f"There is nothing at {path}. Check the path, or take it off the list.")
    raise ModelFormatError(f"{path} is no model: no .gguf file, checkpoint or Hugging Face directory. Choose another.")


def _of_gguf(path: Path) -> ModelFacts:
    file = GgufFile(path)
    try:
        by_kind: dict[str, int] = {}
        for tensor in file.tensors.values():
            by_kind[tensor.kind] = by_kind.get(tensor.kind, 0) + tensor.num_bytes
        stated = file.metadata.get("general.file_type")
        most = max(by_kind, key=by_kind.__getitem__, default="").upper()
        return ModelFacts(
            kind="gguf",
            title=_text(file, "general.name"),
            parameters=sum(math.prod(tensor.shape) for tensor in file.tensors.values()),
            quantization=_FILE_TYPES.get(stated, most) if isinstance(stated, int) else most,
            licence=_text(file, "general.license"),
            num_bytes=path.stat().st_size,
        )
    finally:
        file.close()


def _text(file: GgufFile, key: str) -> str:
    try:
        return " ".join((file.string(key) or "").split())[:200]
    except ModelFormatError:
        # A name that is no text is no reason not to show the file.
        return ""


def _of_checkpoint(path: Path) -> ModelFacts:
    recipe = read_manifest(path).recipe
    source = recipe.source.name.removesuffix(".gguf") + (f" + {recipe.adapter.name}" if recipe.adapter else "")
    parameters = sum(math.prod(shape) for shape in weight_shapes(recipe.spec).values())
    return ModelFacts("checkpoint", source, parameters, recipe.scheme, "", _size_of(path))


def _of_directory(path: Path) -> ModelFacts:
    source = HuggingFaceSource(path)
    try:
        kinds = [source.tensor_kind(name) for name in source.tensor_names()]
        most = max(kinds, key=lambda kind: math.prod(kind[1]), default=("", ()))[0].upper()
        return ModelFacts("directory", "", _parameters(source), most, _licence_of(path), _size_of(path))
    finally:
        source.close()


def _parameters(source: ModelSource) -> int:
    return sum(math.prod(source.tensor_kind(name)[1]) for name in source.tensor_names())


def _licence_of(path: Path) -> str:
    """The first line of the licence's own text."""
    for file in sorted(path.glob("LICENSE*")):
        try:
            with file.open("rb") as opened:
                text = opened.read(_LICENCE_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        for line in text.splitlines():
            if line.strip(" #*-="):
                return line.strip(" #*-=")[:_LICENCE_CHARACTERS]
    return ""


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir() if path.is_file())
