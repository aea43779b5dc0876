"""Our own checkpoints: a directory of quantized weights, as a ModelSource.

    manifest.json            what it was made from, the spec, the format of every matrix, size and sha256 of every file
    config.json              as Hugging Face has it, for people and other programs
    tokenizer_data.json      the vocabulary's settings; with tokenizer.json where the source has one
    embed.safetensors        the embedding, which is the head too where they are tied
    layer_00.safetensors     and so on: QKV and gate/up each as one matrix
    norm.safetensors, head.safetensors

Matrices are bytes (U8), the tiles of kernels/weights/quant_format.py; norms and biases are float32.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from inference.errors import ModelFormatError
from inference.formats.checkpoint.layout import LayoutFile, StoredTensor, checkpoint_layout
from inference.formats.checkpoint.manifest import CURE, Manifest, ManifestFile, made_here, read_manifest
from inference.formats.huggingface.safetensors_file import SafetensorsFile, SafetensorsTensor
from inference.formats.huggingface.tokenizer import MAX_TOKENIZER_BYTES
from inference.formats.json_file import read_object, read_text
from inference.formats.model_source import WeightTensor
from inference.formats.partial_file import CHUNK_BYTES
from inference.formats.transfer import OnProgress
from inference.formats.weight_shapes import Shape, check_weights
from inference.models.model_spec import ModelSpec
from inference.text.tokenizer_data import TokenizerData
from kernels.weights.quant_format import QuantFormat

TOKENIZER_DATA = "tokenizer_data.json"
TOKENIZER = "tokenizer.json"


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """Where a tensor lies under its ordinary name: bytes `start` to `end` of a stored one."""

    file: SafetensorsFile
    tensor: SafetensorsTensor
    kind: str
    shape: Shape
    start: int
    end: int


class CheckpointSource:
    """A checkpoint as a ModelSource: ordinary names, each part of a fused matrix a view of its bytes.

    Attributes:
        manifest: what the checkpoint says of itself.
    """

    def __init__(self, path: Path) -> None:
        """Opens and checks everything but the bytes of the weights; those are `verify_checkpoint`'s matter.

        Raises:
            ModelFormatError: unfinished, damaged, or files that do not fit the manifest.
            UnsupportedModelError: written by a newer version of the program.
        """
        self.path = path
        self.manifest: Manifest = read_manifest(path)
        self.spec: ModelSpec = self.manifest.recipe.spec
        self._files: list[SafetensorsFile] = []
        self._parts: dict[str, _Part] = {}
        try:
            with made_here():
                for name, file in self.manifest.files.items():
                    _check_size(path, name, file)
                for layout_file in checkpoint_layout(self.spec):
                    self._open(layout_file)
                check_weights(self.spec, {name: part.shape for name, part in self._parts.items()}, path.name)
        except BaseException:
            self.close()
            raise

    def tensor_names(self) -> tuple[str, ...]:
        """All tensors, in file order."""
        return tuple(self._parts)

    def tensor_kind(self, name: str) -> tuple[str, Shape]:
        """Kind ("w4g128", "f32", ...) and shape of a tensor without reading it."""
        part = self._find(name)
        return part.kind, part.shape

    def tensor(self, name: str) -> WeightTensor:
        """Maps one tensor: (1, bytes), a view. Raises ModelFormatError where the model lacks it."""
        part = self._find(name)
        data = part.file.tensor_bytes(part.tensor)[part.start : part.end]
        return WeightTensor(name, part.shape, part.kind, data.reshape(1, -1))

    def tokenizer_data(self) -> TokenizerData:
        """What the source's own reader gave when the checkpoint was written."""
        with made_here():
            return read_tokenizer_data(self.path, self.spec.vocab_size)

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files:
            file.close()

    def _find(self, name: str) -> _Part:
        part = self._parts.get(name)
        if part is None:
            raise ModelFormatError(f"{self.path} has no tensor {name!r}. {CURE}")
        return part

    def _open(self, layout_file: LayoutFile) -> None:
        if layout_file.name not in self.manifest.files:
            raise ModelFormatError(f"The manifest of {self.path} lacks {layout_file.name}. {CURE}")
        file = SafetensorsFile(self.path / layout_file.name, takes_bytes=True)
        self._files.append(file)
        stored = {tensor.name: tensor for tensor in layout_file.tensors}
        if set(file.tensors) != set(stored):
            odd = sorted(set(file.tensors) ^ set(stored))[:3]
            self._fail(layout_file.name, f"has other tensors than its model: {', '.join(odd)}")
        for name, tensor in stored.items():
            self._add(layout_file.name, file, tensor, file.tensors[name])

    def _add(self, file_name: str, file: SafetensorsFile, tensor: StoredTensor, found: SafetensorsTensor) -> None:
        of_format = self._format(tensor) if tensor.is_matrix else None
        kind = "f32" if of_format is None else of_format.name
        shape = (tensor.rows,) if of_format is None else (of_format.nbytes(tensor.rows, tensor.columns),)
        if found.kind != ("f32" if of_format is None else "u8") or found.shape != shape:
            self._fail(file_name, f"has {tensor.name!r} as {found.kind} {found.shape}, but {kind} takes {shape}")
        start = 0
        for name, rows in tensor.parts:
            size = 4 * rows if of_format is None else of_format.nbytes(rows, tensor.columns)
            self._parts[name] = _Part(file, found, kind, tensor.part_shape(rows), start, start + size)
            start += size

    def _format(self, tensor: StoredTensor) -> QuantFormat:
        name = self.manifest.recipe.formats.get(tensor.name)
        if name is None:
            raise ModelFormatError(f"The manifest of {self.path} has no format of {tensor.name!r}. {CURE}")
        return QuantFormat.parse(name)

    def _fail(self, file_name: str, what: str) -> NoReturn:
        raise ModelFormatError(f"{self.path / file_name} {what}. {CURE}")


def verify_checkpoint(path: Path, on_progress: OnProgress | None = None) -> None:
    """Reads every file and compares it with its sha256, then opens the checkpoint and its vocabulary.

    Raises:
        ModelFormatError: a file is missing or has other bytes; names it.
        UnsupportedModelError: written by a newer version of the program.
    """
    files = read_manifest(path).files
    total_bytes, done_bytes = sum(file.num_bytes for file in files.values()), 0
    for name, file in files.items():
        _check_size(path, name, file)
        digest = hashlib.sha256()
        with (path / name).open("rb") as opened:
            while chunk := opened.read(CHUNK_BYTES):
                digest.update(chunk)
                done_bytes += len(chunk)
                if on_progress is not None:
                    on_progress(done_bytes, total_bytes, f"Checking {path.name}.")
        if digest.hexdigest() != file.sha256:
            raise ModelFormatError(
                f"{path / name} is damaged: its sha256 is {digest.hexdigest()}, but it must be {file.sha256}. {CURE}"
            )
    source = CheckpointSource(path)
    try:
        source.tokenizer_data()
    finally:
        source.close()


def write_tokenizer_data(data: TokenizerData) -> dict[str, Any]:
    """What `read_tokenizer_data` reads, without the text of tokenizer.json, which is a file of its own."""
    return {**dataclasses.asdict(data), "tokenizer_json": None, "has_tokenizer_json": data.tokenizer_json is not None}


def read_tokenizer_data(path: Path, vocab_size: int) -> TokenizerData:
    """The vocabulary that was written with a checkpoint.

    Raises:
        ModelFormatError: a file is missing or no sound one.
    """
    document = read_object(path / TOKENIZER_DATA, MAX_TOKENIZER_BYTES)
    has_tokenizer = document.pop("has_tokenizer_json", None)
    fields = {field.name for field in dataclasses.fields(TokenizerData)}
    if set(document) != fields or type(has_tokenizer) is not bool or not _sound(document, vocab_size):
        raise ModelFormatError(f"{path / TOKENIZER_DATA} is damaged. {CURE}")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in document.items()
    }
    values["tokenizer_json"] = read_text(path / TOKENIZER, MAX_TOKENIZER_BYTES) if has_tokenizer else None
    return TokenizerData(**values)


def _sound(document: Mapping[str, Any], vocab_size: int) -> bool:
    def all_of(key: str, kind: type) -> bool:
        value = document[key]
        return isinstance(value, list) and all(type(item) is kind for item in value)

    def token_id(value: Any) -> bool:
        return type(value) is int and 0 <= value < vocab_size

    texts = all(isinstance(document[key], str) for key in ("pre_tokenizer", "bos_token", "eos_token"))
    template = document["chat_template"] is None or isinstance(document["chat_template"], str)
    lists = all_of("tokens", str) and all_of("merges", str) and all_of("token_types", int)
    ends = all_of("eos_token_ids", int) and all(token_id(end) for end in document["eos_token_ids"])
    starts = document["bos_token_id"] is None or token_id(document["bos_token_id"])
    fits = len(document["tokens"]) <= vocab_size if lists else False
    return texts and template and lists and ends and starts and fits and type(document["add_bos_token"]) is bool


def _check_size(path: Path, name: str, file: ManifestFile) -> None:
    try:
        found = (path / name).stat().st_size if (path / name).is_file() else None
    except OSError as error:
        raise ModelFormatError(f"{path / name} cannot be read: {error.strerror or error}. {CURE}") from error
    if found != file.num_bytes:
        stated = "missing" if found is None else f"{found} bytes long"
        raise ModelFormatError(f"{path / name} is {stated}, but it must have {file.num_bytes} bytes. {CURE}")
