"""From a source to a checkpoint: streaming, and going on where an earlier run was stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.byte_size import size_text
from inference.errors import InvalidRequestError, ModelFormatError, UnsupportedModelError
from inference.formats.checkpoint.checkpoint import TOKENIZER_DATA, CheckpointSource, write_tokenizer_data
from inference.formats.checkpoint.layout import EMBEDDING, HEAD, HEAD_FILE, LayoutFile, checkpoint_layout
from inference.formats.checkpoint.manifest import Origin, Recipe
from inference.formats.checkpoint.writer import CheckpointWriter, Chunks, check_directory, entries_of, planned_bytes
from inference.formats.huggingface.config import config_of
from inference.formats.huggingface.lora import CONFIG, WEIGHTS, LoraAdapter
from inference.formats.model_file import open_model
from inference.formats.model_source import ModelSource
from inference.formats.transfer import OnProgress
from inference.quantize.calibration import Calibration, check_length
from inference.quantize.curvature import Curvature
from inference.quantize.device_budget import matrix_budget
from inference.quantize.error_feedback import FeedbackQuantizer
from inference.quantize.quantizer import NearestQuantizer, Quantizer
from inference.quantize.scheme import (
    DEFAULT_GROUP,
    Choice,
    check_fits,
    check_scheme,
    choose_best,
    influence_of,
    matrices,
    open_choices,
    scheme_formats,
)
from inference.quantize.text_file import read_text_file
from inference.quantize.weight_stream import WeightStream
from inference.store.source_files import copied_files, sha256_of, weight_files_of
from inference.text.tokenizer import Tokenizer
from kernels.weights.quant_format import QuantFormat, pack

CALIBRATION_TOKENS = 4096
SAMPLED = 8
"""Scheme auto measures one of so many rows of tiles."""


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """What is to be made.

    Attributes:
        group_size: weights that share a scale.
        adapter: directory of a LoRA adapter to merge first.
        calibration: a text like those that the model will be used on; rounding then minds what its words make of the
            weights. None rounds to the nearest.
        fit_bytes, context_tokens: memory of the device and the context it is to hold; of scheme auto.
        force: overwrite another checkpoint in the directory.
        threads: None is one for each physical core.
    """

    scheme: str = "w4"
    group_size: int = DEFAULT_GROUP
    adapter: Path | None = None
    calibration: Path | None = None
    fit_bytes: int | None = None
    context_tokens: int = 8192
    force: bool = False
    threads: int | None = None


def quantize_model(
    source_path: Path,
    directory: Path,
    options: QuantizeOptions | None = None,
    on_progress: OnProgress | None = None,
    quantizer: Quantizer | None = None,
) -> Recipe:
    """Writes a checkpoint of a model; what an earlier run of the same recipe has finished is taken over.

    Args:
        source_path: a .gguf file or a Hugging Face directory.
        directory: empty, new, or with what an earlier run has left.
        on_progress: called with (done_bytes, total_bytes, note), on this thread.
        quantizer: None is the one that the options ask for; it is not closed.

    Returns:
        What was made.

    Raises:
        InvalidRequestError: options that do not go together, or no scheme that fits.
        ModelNotFoundError, ModelFormatError, UnsupportedModelError: the source or the adapter.
        QuantizeError: the directory or its disk.
    """
    options = options or QuantizeOptions()
    check_scheme(options.scheme, options.group_size)
    if (options.scheme == "auto") != (options.fit_bytes is not None):
        raise InvalidRequestError("The scheme auto needs --fit, and --fit needs the scheme auto.")
    # What cannot be written is not to be found out after an hour of measuring.
    check_directory(directory)
    source = open_model(source_path)
    kind = NearestQuantizer if options.calibration is None else FeedbackQuantizer
    own: Quantizer | None = kind(options.threads) if quantizer is None else None
    try:
        if isinstance(source, CheckpointSource):
            raise UnsupportedModelError(f"{source_path} is quantized already. Quantize its source again instead.")
        used = quantizer or own
        assert used is not None
        return _Job(source, directory, options, on_progress or _silent, used).run()
    finally:
        source.close()
        if own is not None:
            own.close()


def _silent(done_bytes: int, total_bytes: int, note: str) -> None:
    del done_bytes, total_bytes, note


class _Job:
    def __init__(
        self,
        source: ModelSource,
        directory: Path,
        options: QuantizeOptions,
        on_progress: OnProgress,
        quantizer: Quantizer,
    ) -> None:
        self._source, self._directory, self._options = source, directory, options
        self._on_progress, self._quantizer = on_progress, quantizer
        self._adapter = None if options.adapter is None else LoraAdapter(options.adapter, source.spec)
        self._stream = WeightStream(source, self._adapter)
        self._formats: dict[str, QuantFormat] = {}
        self._calibration: Calibration | None = None
        self._curvatures: dict[str, Curvature] = {}

    def run(self) -> Recipe:
        """All of it."""
        token_ids = self._calibration_tokens()
        recipe = self._recipe(token_ids)
        writer = CheckpointWriter(self._directory, recipe, force=self._options.force)
        try:
            if writer.is_whole:
                self._on_progress(1, 1, f"{self._directory} holds this checkpoint already.")
                return recipe
            if writer.finished_bytes:
                self._on_progress(0, 0, f"Going on after {size_text(writer.finished_bytes)} that are finished.")
            writer.require_space()
            self._write_small_files(writer)
            if token_ids is not None:
                self._on_progress(0, 0, "Reading the text to calibrate with.")
                self._calibration = Calibration(self._stream, self._source.spec, token_ids)
            self._write_weights(writer, planned_bytes(recipe))
            writer.finish()
        finally:
            writer.close()
        return recipe

    # What is made

    def _calibration_tokens(self) -> list[int] | None:
        path = self._options.calibration
        if path is None:
            return None
        tokenizer = Tokenizer.from_data(self._source.tokenizer_data())
        token_ids = tokenizer.encode_text(read_text_file(path))[:CALIBRATION_TOKENS]
        # Before anything is written: the journal of a text that is too short would refuse a longer one.
        check_length(len(token_ids))
        return token_ids

    def _recipe(self, token_ids: list[int] | None) -> Recipe:
        source, options = self._source, self._options
        origin = Origin(source.path.resolve().name, self._hash("Reading the source.", weight_files_of(source.path)))
        adapter = None
        if self._adapter is not None:
            files = [self._adapter.path / CONFIG, self._adapter.path / WEIGHTS]
            adapter = Origin(self._adapter.name, self._hash("Reading the adapter.", files))
        if options.scheme == "auto":
            self._formats = self._measured_formats()
        else:
            self._formats = scheme_formats(source.spec, options.scheme, options.group_size)
        method = self._quantizer.name
        if token_ids is not None:
            seen = hashlib.sha256(np.asarray(token_ids, "<i4").tobytes()).hexdigest()
            method += f"; calibrated on {len(token_ids)} tokens of {seen[:16]}"
        return Recipe(
            spec=source.spec,
            scheme=options.scheme,
            method=method,
            formats={name: of_format.name for name, of_format in self._formats.items()},
            source=origin,
            adapter=adapter,
        )

    def _hash(self, note: str, files: list[Path]) -> str:
        return sha256_of(files, lambda done, total: self._on_progress(done, total, note))

    def _measured_formats(self) -> dict[str, QuantFormat]:
        spec, options = self._source.spec, self._options
        assert options.fit_bytes is not None, "checked before"
        budget = matrix_budget(spec, options.fit_bytes, min(options.context_tokens, spec.max_context))
        open_formats = open_choices(spec, options.group_size)
        fixed = {name: high for name, (low, high) in open_formats.items() if low == high}
        stored = {tensor.name: tensor for tensor in matrices(spec)}
        for name, of_format in fixed.items():
            # An embedding that is no head lies in the host's memory.
            if name != EMBEDDING or spec.tied_head:
                budget -= of_format.nbytes(stored[name].rows, stored[name].columns)
        # Before the measuring, which takes minutes.
        check_fits(
            sum(
                low.nbytes(stored[name].rows, stored[name].columns)
                for name, (low, _) in open_formats.items()
                if name not in fixed
            ),
            budget,
        )
        choices = []
        total = sum(tensor.rows * tensor.columns for tensor in stored.values())
        done = 0
        for name, (low, high) in open_formats.items():
            if name not in fixed:
                errors = self._errors(stored[name].parts, (low, high))
                choices.append(Choice(stored[name], low, high, errors[0], errors[1], influence_of(name, spec)))
            done += stored[name].rows * stored[name].columns
            self._on_progress(done, total, "Measuring what 3 and 4 bits lose.")
        chosen = {**fixed, **choose_best(choices, budget)}
        return {name: chosen[name] for name in open_formats}

    def _errors(self, parts: tuple[tuple[str, int], ...], formats: tuple[QuantFormat, QuantFormat]) -> list[float]:
        """Squared error of each format as a share of the weights' squares, over a sample of the rows."""
        squares, errors = 0.0, [0.0 for _ in formats]
        for name, _ in parts:
            for weights in self._stream.slices(name, every=SAMPLED):
                squares += float(np.vdot(weights, weights))
                for index, of_format in enumerate(formats):
                    wrong = self._quantizer.quantize(weights, of_format).dequantize() - weights
                    errors[index] += float(np.vdot(wrong, wrong))
        return [error / max(squares, 1e-30) for error in errors]

    # What is written

    def _write_small_files(self, writer: CheckpointWriter) -> None:
        data = self._source.tokenizer_data()
        files: dict[str, Callable[[], bytes]] = {
            name: path.read_bytes for name, path in copied_files(self._source.path).items()
        }
        files.setdefault("config.json", lambda: _json(config_of(self._source.spec)))
        files[TOKENIZER_DATA] = lambda: _json(write_tokenizer_data(data))
        for name, content in files.items():
            if not writer.has(name):
                try:
                    chunk = content()
                except OSError as error:
                    raise ModelFormatError(
                        f"{self._source.path / name} cannot be read: {error.strerror or error}. Check its permissions."
                    ) from error
                writer.write(name, [chunk])

    def _write_weights(self, writer: CheckpointWriter, total_bytes: int) -> None:
        done = 0

        def counted(chunks: Chunks) -> Iterator[bytes | memoryview]:
            nonlocal done
            for chunk in chunks:
                yield chunk
                done += len(chunk)
                self._on_progress(done, total_bytes, "Quantizing.")

        names = {name: of_format.name for name, of_format in self._formats.items()}
        for index, file in enumerate(checkpoint_layout(self._source.spec)):
            self._calibrate(file, index - 1, wanted=not writer.has(file.name))
            entries = entries_of(file, names)
            if writer.has(file.name):
                done += sum(entry.num_bytes for entry in entries)
            else:
                writer.write_tensors(file.name, entries, counted(self._chunks(file)))

    def _calibrate(self, file: LayoutFile, layer: int, *, wanted: bool) -> None:
        """Takes the text of the calibration to where a file's matrices read it; finished layers are only passed."""
        self._curvatures = {}
        calibration, spec = self._calibration, self._source.spec
        if calibration is None:
            return
        if 0 <= layer < spec.num_layers:
            found = calibration.layer(layer, wanted=wanted)
            self._curvatures = {
                tensor.name: found[reader]
                for tensor in file.tensors
                if tensor.is_matrix and wanted
                for reader in found
                if _reads(reader, tensor.name)
            }
        elif file.name == HEAD_FILE and wanted and self._formats[HEAD].bits < 8:
            self._curvatures = {HEAD: calibration.head()}

    def _chunks(self, file: LayoutFile) -> Iterator[memoryview]:
        """The bytes of a file's tensors, in order."""
        for tensor in file.tensors:
            for name, _ in tensor.parts:
                if not tensor.is_matrix:
                    yield self._stream.vector(name).astype("<f4").data.cast("B")
                    continue
                for weights in self._stream.slices(name):
                    matrix = self._quantizer.quantize(
                        weights, self._formats[tensor.name], self._curvatures.get(tensor.name)
                    )
                    yield pack(matrix).data


def _reads(reader: str, name: str) -> bool:
    """Whether a stored matrix takes the inputs that a module of the calibration reads; it may be one part of that."""
    alike = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
    group, _, module = reader.partition(".")
    return any(name.endswith(f".{group}.{each}.weight") for each in (module, *alike.get(module, ())))


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, ensure_ascii=False).encode()
