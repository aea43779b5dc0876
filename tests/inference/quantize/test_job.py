"""Quantizing: every weight is what the method made of it, backends compute with it, and stopping costs little."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.errors import (
    InferenceError,
    InvalidRequestError,
    ModelFormatError,
    QuantizeError,
    UnsupportedModelError,
)
from inference.formats.checkpoint.checkpoint import CheckpointSource, verify_checkpoint
from inference.formats.checkpoint.layout import EMBEDDING
from inference.formats.checkpoint.manifest import JOURNAL, MANIFEST
from inference.formats.checkpoint.writer import planned_bytes
from inference.formats.model_file import open_model
from inference.quantize.device_budget import matrix_budget
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.quantize.quantizer import NearestQuantizer
from inference.quantize.scheme import matrices
from inference.quantize.weight_stream import WeightStream
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix
from kernels.weights.reference import dequantize

TinyModel = Callable[..., Path]
FAMILIES = [("qwen2", False), ("qwen2", True), ("llama", False), ("qwen3", True)]


def hashes(directory: Path) -> dict[str, str]:
    files = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))["files"]
    return {name: file["sha256"] for name, file in files.items()}


@pytest.fixture
def quantizer() -> Iterator[NearestQuantizer]:
    made = NearestQuantizer(1)
    yield made
    made.close()


class Stopping:
    """Rounds so many slices, then does what it was told."""

    name = NearestQuantizer.name

    def __init__(self, inner: NearestQuantizer, calls: int, stop: BaseException) -> None:
        self._inner, self._stop = inner, stop
        self.calls, self._left = 0, calls

    def quantize(self, weights: Any, of_format: QuantFormat, importance: Any = None) -> QuantizedMatrix:
        if self.calls == self._left:
            raise self._stop
        self.calls += 1
        return self._inner.quantize(weights, of_format, importance)

    def close(self) -> None:
        """Its inner one is closed by who made it."""


# -- what is written --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "tied"), FAMILIES)
@pytest.mark.parametrize(("scheme", "group"), [("w4", 128), ("w4-all", 32), ("mixed", 64), ("w3", 128)])
def test_every_weight_is_what_the_method_made_of_it(
    tiny_model: TinyModel,
    tmp_path: Path,
    quantizer: NearestQuantizer,
    family: str,
    tied: bool,
    scheme: str,
    group: int,
) -> None:
    path = tiny_model(family, tie_word_embeddings=tied)
    quantize_model(path, tmp_path / "out", QuantizeOptions(scheme, group), quantizer=quantizer)
    source, checkpoint = open_model(path), open_model(tmp_path / "out")
    assert isinstance(checkpoint, CheckpointSource)
    assert checkpoint.spec == source.spec
    assert checkpoint.tokenizer_data() == source.tokenizer_data()
    assert set(checkpoint.tensor_names()) == set(source.tensor_names())
    for name in source.tensor_names():
        original, tensor = source.tensor(name), checkpoint.tensor(name)
        weights = dequantize(original.kind, original.data, original.shape)
        found = dequantize(tensor.kind, tensor.data, tensor.shape)
        if weights.ndim == 1:
            assert tensor.kind == "f32"
            np.testing.assert_array_equal(found, weights)
        else:
            expected = quantizer.quantize(weights, QuantFormat.parse(tensor.kind)).dequantize()
            np.testing.assert_array_equal(found, expected)
            assert checkpoint.tensor_kind(name) == (tensor.kind, weights.shape)
    verify_checkpoint(tmp_path / "out")
    source.close()
    checkpoint.close()


@pytest.mark.parametrize(("family", "tied"), FAMILIES)
@pytest.mark.parametrize("scheme", ["w4", "mixed"])
def test_backends_compute_with_it(
    tiny_model: TinyModel,
    tmp_path: Path,
    logits_of: Callable[..., np.ndarray],
    family: str,
    tied: bool,
    scheme: str,
) -> None:
    """The oracle equals transformers with the dequantized weights; the CPU differs by the rounding of activations."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path = tiny_model(family, tie_word_embeddings=tied)
    quantize_model(path, tmp_path / "out", QuantizeOptions(scheme, 32, threads=1))
    checkpoint = CheckpointSource(tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    with torch.no_grad():
        state = model.state_dict()
        for name in checkpoint.tensor_names():
            tensor = checkpoint.tensor(name)
            state[name].copy_(torch.from_numpy(dequantize(tensor.kind, tensor.data, tensor.shape)))
        ids = np.random.default_rng(3).integers(0, checkpoint.spec.vocab_size, 40)
        expected = model(torch.from_numpy(ids)[None]).logits[0].numpy()
    checkpoint.close()
    oracle = logits_of(tmp_path / "out", "torch")
    np.testing.assert_allclose(oracle, expected, rtol=2e-4, atol=2e-4)
    for options in ({"threads": 1}, {"threads": 1, "exact_logits": True}):
        found = logits_of(tmp_path / "out", "cpu", **options)
        # Random weights make much of small differences; a wrong weight makes a difference of 1.
        assert np.linalg.norm(found - expected) < 0.06 * np.linalg.norm(expected)
    packed = logits_of(tmp_path / "out", "torch", packed=True)
    assert np.linalg.norm(packed - expected) < 0.08 * np.linalg.norm(expected)


def test_q_k_and_v_are_slices_of_one_matrix(tiny_model: TinyModel, tmp_path: Path) -> None:
    quantize_model(tiny_model("qwen2"), tmp_path / "out", QuantizeOptions(threads=1))
    source = CheckpointSource(tmp_path / "out")
    for prefix, names in (("self_attn", "qkv"), ("mlp", ("gate", "up"))):
        parts = [source.tensor(f"model.layers.1.{prefix}.{name}_proj.weight").data for name in names]
        for first, second in itertools.pairwise(parts):
            assert first.ctypes.data + first.nbytes == second.ctypes.data
            assert first.ctypes.data % 32 == 0
            assert not first.flags.owndata
    source.close()


def test_parts_that_do_not_end_with_a_tile_lie_apart(tiny_model: TinyModel, tmp_path: Path) -> None:
    path = tiny_model("qwen2", hidden_size=48, intermediate_size=80)  # 24 rows of K and V
    recipe = quantize_model(path, tmp_path / "out", QuantizeOptions(threads=1))
    assert "model.layers.0.self_attn.k_proj.weight" in recipe.formats
    assert "model.layers.0.mlp.gate_up_proj.weight" in recipe.formats
    source = CheckpointSource(tmp_path / "out")
    tensor = source.tensor("model.layers.0.self_attn.k_proj.weight")
    assert dequantize(tensor.kind, tensor.data, tensor.shape).shape == (24, 48)
    source.close()


def test_other_programs_read_its_files(tiny_model: TinyModel, tmp_path: Path) -> None:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    transformers = pytest.importorskip("transformers")
    path = tiny_model("qwen2")
    recipe = quantize_model(path, tmp_path / "out", QuantizeOptions(threads=1))
    size = 0
    for file in sorted((tmp_path / "out").glob("*.safetensors")):
        size += sum(tensor.nbytes for tensor in safetensors_numpy.load_file(file).values())
    assert size == planned_bytes(recipe)
    original, copied = (transformers.AutoTokenizer.from_pretrained(where) for where in (path, tmp_path / "out"))
    assert copied("some text <|im_end|>") == original("some text <|im_end|>")
    assert copied.chat_template == original.chat_template


def test_a_slice_of_rows_changes_nothing(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantize_model(tiny_model("qwen2"), tmp_path / "whole", QuantizeOptions(threads=1))
    monkeypatch.setattr("inference.quantize.weight_stream.SLICE_WEIGHTS", 1)
    quantize_model(tiny_model("qwen2"), tmp_path / "slices", QuantizeOptions(threads=1))
    assert hashes(tmp_path / "slices") == hashes(tmp_path / "whole")


def test_the_better_scheme_loses_less(
    tiny_model: TinyModel, tmp_path: Path, logits_of: Callable[..., np.ndarray]
) -> None:
    path = tiny_model("llama")
    expected, losses = logits_of(path, "torch"), []
    for scheme in ("w4", "w4-all", "mixed", "w3"):
        quantize_model(path, tmp_path / scheme, QuantizeOptions(scheme, 32, threads=1))
        found = logits_of(tmp_path / scheme, "torch")
        losses.append(float(np.linalg.norm(found - expected) / np.linalg.norm(expected)))
    assert losses == sorted(losses)
    assert losses[0] < 0.8 * losses[-1]


# -- scheme auto ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [True, False])
def test_auto_fills_what_there_is(tiny_model: TinyModel, tmp_path: Path, tied: bool) -> None:
    path = tiny_model("llama", tie_word_embeddings=tied, head_dim=64)
    source = open_model(path)
    spec = source.spec
    source.close()
    low, high = (
        sum(
            QuantFormat(4 if tensor.name == EMBEDDING else bits, 128).nbytes(tensor.rows, tensor.columns)
            for tensor in matrices(spec)
            if tied or tensor.name != EMBEDDING
        )
        for bits in (3, 4)
    )
    beside = -matrix_budget(spec, 0, 64)
    better, used = [], []
    for share in (0.0, 0.3, 0.7, 1.0):
        fit = beside + low + int(share * (high - low))
        recipe = quantize_model(
            path, tmp_path / str(share), QuantizeOptions("auto", fit_bytes=fit, context_tokens=64, threads=1)
        )
        formats = [recipe.formats[tensor.name] for tensor in matrices(spec) if tensor.name != EMBEDDING]
        better.append(formats.count("w4g128"))
        used.append(planned_bytes(recipe))
    assert 0 == better[0] < better[1] < better[2] < better[3] == len(formats)
    assert used == sorted(used)
    assert used[3] - used[0] == high - low
    options = QuantizeOptions("auto", fit_bytes=beside + low - 1, context_tokens=64)
    notes: list[str] = []
    with pytest.raises(InvalidRequestError, match=r"are left for them\. Give 1 MB more with --fit"):
        quantize_model(path, tmp_path / "no", options, lambda done, total, note: notes.append(note))
    assert set(notes) == {"Reading the source."}
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (QuantizeOptions("w5"), "no scheme 'w5'"),
        (QuantizeOptions("w4", 100), "group is 100"),
        (QuantizeOptions("auto"), "auto needs --fit"),
        (QuantizeOptions("w4", fit_bytes=1), "auto needs --fit"),
    ],
)
def test_options_that_do_not_go_together(
    tiny_model: TinyModel, tmp_path: Path, options: QuantizeOptions, match: str
) -> None:
    with pytest.raises(InvalidRequestError, match=match):
        quantize_model(tiny_model("llama"), tmp_path / "out", options)


def test_a_text_that_is_too_short_leaves_nothing_behind(tiny_model: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("short", encoding="utf-8")
    options = QuantizeOptions(calibration=tmp_path / "text", threads=1)
    with pytest.raises(InvalidRequestError, match=r"has \d+ tokens, but .* Give a longer text"):
        quantize_model(tiny_model("llama"), tmp_path / "out", options)
    assert not (tmp_path / "out").exists()


# -- sources that are no good -----------------------------------------------------------------------------------------


def damaged_copy(path: Path, target: Path, name: str, value: float) -> Path:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    shutil.copytree(path, target)
    state = safetensors_numpy.load_file(target / "model.safetensors")
    state[name].reshape(-1)[state[name].size // 2] = value
    safetensors_numpy.save_file(state, target / "model.safetensors", metadata={"format": "pt"})
    return target


@pytest.mark.parametrize("value", [np.nan, np.inf, -70_000.0])
@pytest.mark.parametrize("name", ["model.layers.2.mlp.up_proj.weight", "model.layers.1.self_attn.q_proj.bias"])
def test_values_that_cannot_be_are_named(tiny_model: TinyModel, tmp_path: Path, name: str, value: float) -> None:
    path = damaged_copy(tiny_model("qwen2"), tmp_path / "bad", name, value)
    place = r"\(48, 0\)" if name.endswith("weight") else r"\(32\)"
    with pytest.raises(ModelFormatError, match=rf"{name}.*{place}.*fetch the model again"):
        quantize_model(path, tmp_path / "out", QuantizeOptions(threads=1))
    with pytest.raises(ModelFormatError, match="not finished"):
        open_model(tmp_path / "out")


def test_a_checkpoint_is_no_source(tiny_model: TinyModel, tmp_path: Path) -> None:
    quantize_model(tiny_model("llama"), tmp_path / "out", QuantizeOptions(threads=1))
    with pytest.raises(UnsupportedModelError, match="quantized already"):
        quantize_model(tmp_path / "out", tmp_path / "again")


# -- stopping and going on --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), MemoryError()])
def test_finished_files_are_not_made_again(
    tiny_model: TinyModel, tmp_path: Path, quantizer: NearestQuantizer, stop: BaseException
) -> None:
    path = tiny_model("qwen2")
    whole = Stopping(quantizer, -1, stop)
    quantize_model(path, tmp_path / "whole", quantizer=whole)
    first = Stopping(quantizer, whole.calls - 4, stop)
    with pytest.raises(type(stop)):
        quantize_model(path, tmp_path / "out", quantizer=first)
    assert not (tmp_path / "out" / MANIFEST).exists()
    with pytest.raises(ModelFormatError, match="same deskinfer quantize command again"):
        open_model(tmp_path / "out")
    notes: list[str] = []
    second = Stopping(quantizer, -1, stop)
    quantize_model(path, tmp_path / "out", None, lambda done, total, note: notes.append(note), second)
    # The last layer was begun, and the head comes after it.
    assert second.calls < 12 < whole.calls
    assert any(note.startswith("Going on after") for note in notes)
    assert hashes(tmp_path / "out") == hashes(tmp_path / "whole")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {*hashes(tmp_path / "whole"), MANIFEST}


def test_a_whole_checkpoint_is_left_alone(tiny_model: TinyModel, tmp_path: Path, quantizer: NearestQuantizer) -> None:
    path = tiny_model("qwen2")
    quantize_model(path, tmp_path / "out", quantizer=quantizer)
    times = {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    again = Stopping(quantizer, 0, AssertionError("nothing is to be rounded"))
    quantize_model(path, tmp_path / "out", quantizer=again)
    assert {file.name: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()} == times


def test_a_damaged_file_is_made_again(tiny_model: TinyModel, tmp_path: Path, quantizer: NearestQuantizer) -> None:
    path = tiny_model("qwen2")
    quantize_model(path, tmp_path / "out", quantizer=quantizer)
    before = hashes(tmp_path / "out")
    layer = tmp_path / "out" / "layer_01.safetensors"
    layer.write_bytes(layer.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(ModelFormatError, match=r"layer_01.*sha256"):
        verify_checkpoint(tmp_path / "out")
    (tmp_path / "out" / "norm.safetensors").unlink()
    counted = Stopping(quantizer, -1, AssertionError())
    quantize_model(path, tmp_path / "out", quantizer=counted)
    assert counted.calls == 7
    assert hashes(tmp_path / "out") == before
    verify_checkpoint(tmp_path / "out")


def test_another_recipe_needs_force(tiny_model: TinyModel, tmp_path: Path) -> None:
    path = tiny_model("qwen2")
    quantize_model(path, tmp_path / "out", QuantizeOptions("w4", threads=1))
    with pytest.raises(QuantizeError, match=r"another checkpoint \(w4 of .*--force"):
        quantize_model(path, tmp_path / "out", QuantizeOptions("w3", threads=1))
    CheckpointSource(tmp_path / "out").close()
    recipe = quantize_model(path, tmp_path / "out", QuantizeOptions("w3", threads=1, force=True))
    found = CheckpointSource(tmp_path / "out")
    assert found.manifest.recipe == recipe
    found.close()
    quantize_model(path, tmp_path / "fresh", QuantizeOptions("w3", threads=1))
    assert hashes(tmp_path / "out") == hashes(tmp_path / "fresh")


def test_an_unfinished_one_needs_force_as_soon_as_a_file_is_finished(
    tiny_model: TinyModel, tmp_path: Path, quantizer: NearestQuantizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = tiny_model("qwen2"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1 << 20))
        with pytest.raises(QuantizeError, match="MB more"):
            quantize_model(path, out, QuantizeOptions("w4"), quantizer=quantizer)
    # Nothing was written, so a smaller scheme may take its place.
    with pytest.raises(KeyboardInterrupt):
        quantize_model(path, out, QuantizeOptions("w3"), quantizer=Stopping(quantizer, 5, KeyboardInterrupt()))
    with pytest.raises(QuantizeError, match=r"another checkpoint that is not finished \(w3 of .*--force"):
        quantize_model(path, out, QuantizeOptions("w4"), quantizer=quantizer)
    quantize_model(path, out, QuantizeOptions("w3"), quantizer=quantizer)
    verify_checkpoint(out)


def test_a_directory_of_something_else_is_not_touched(tiny_model: TinyModel, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(QuantizeError, match=r"holds 'notes.txt' and no checkpoint"):
        quantize_model(tiny_model("llama"), tmp_path, QuantizeOptions(force=True, threads=1))
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("name", [MANIFEST, JOURNAL])
def test_a_manifest_of_another_program_is_not_overwritten(tiny_model: TinyModel, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"name": "a web page", "icons": []}', encoding="utf-8")
    (tmp_path / "index.part").write_text("mine", encoding="utf-8")
    with pytest.raises(QuantizeError, match="and no checkpoint"):
        quantize_model(tiny_model("llama"), tmp_path, QuantizeOptions(force=True, threads=1))
    assert {file.name for file in tmp_path.iterdir()} == {name, "index.part"}


def test_a_damaged_manifest_of_a_checkpoint_is_overwritten(tiny_model: TinyModel, tmp_path: Path) -> None:
    out, options = tmp_path / "out", QuantizeOptions(threads=1)
    quantize_model(tiny_model("llama"), out, options)
    (out / MANIFEST).write_bytes((out / MANIFEST).read_bytes()[:-40])
    with pytest.raises(QuantizeError, match="--force"):
        quantize_model(tiny_model("llama"), out, options)
    quantize_model(tiny_model("llama"), out, QuantizeOptions(force=True, threads=1))
    verify_checkpoint(out)


def test_a_place_that_is_no_directory_is_seen_before_the_source_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(QuantizeError, match=r"file is no directory\. Choose"):
        quantize_model(tmp_path / "absent", tmp_path / "file", QuantizeOptions(threads=1))


@pytest.mark.skipif(os.name != "posix", reason="links need a right of their own")
def test_a_link_to_nowhere_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(QuantizeError, match=r"link is no directory\. Choose"):
        quantize_model(tmp_path / "absent", tmp_path / "link", QuantizeOptions(threads=1))


def test_a_full_disk(tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, calls = tiny_model("qwen2"), os.fsync, 0

    def failing(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(QuantizeError, match=r"disk is full\. Free some space and give the same command again"):
        quantize_model(path, tmp_path / "out", QuantizeOptions(threads=1))
    monkeypatch.undo()
    with pytest.raises(ModelFormatError, match="not finished"):
        open_model(tmp_path / "out")
    quantize_model(path, tmp_path / "out", QuantizeOptions(threads=1))
    verify_checkpoint(tmp_path / "out")


def test_too_little_space_is_seen_before_anything_is_written(
    tiny_model: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1 << 20))
    with pytest.raises(QuantizeError, match=r"needs \d+ MB more, but 1\.0 MB are free"):
        quantize_model(tiny_model("llama"), tmp_path / "out", QuantizeOptions(threads=1))
    assert not list((tmp_path / "out").glob("*.safetensors"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_that_may_not_be_written(tiny_model: TinyModel, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(QuantizeError, match="permissions"):
        quantize_model(tiny_model("llama"), tmp_path / "out", QuantizeOptions(threads=1))


SLOW = """
import sys, time
from pathlib import Path
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.quantize.quantizer import NearestQuantizer
class Slow(NearestQuantizer):
    def quantize(self, *arguments):
        time.sleep(0.004)
        return super().quantize(*arguments)
quantize_model(Path(sys.argv[1]), Path(sys.argv[2]), QuantizeOptions(threads=1), quantizer=Slow(1))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_at_any_moment(tiny_model: TinyModel, tmp_path: Path, project_root: Path) -> None:
    """Never a model that is not whole; and the end is the same as without the kills."""
    path, out = tiny_model("qwen2"), tmp_path / "out"
    command = [sys.executable, "-c", SLOW, str(path), str(out)]
    rng = np.random.default_rng(4)
    for _ in range(60):
        process = subprocess.Popen(command, cwd=project_root)
        while not out.exists() and process.poll() is None:
            time.sleep(0.002)
        try:
            process.wait(float(rng.uniform(0, 0.12)))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
        if (out / MANIFEST).exists():
            verify_checkpoint(out)
        else:
            with pytest.raises(InferenceError):
                open_model(out)
    quantize_model(path, tmp_path / "calm", QuantizeOptions(threads=1))
    quantize_model(path, out, QuantizeOptions(threads=1))
    assert hashes(out) == hashes(tmp_path / "calm")
    assert not (out / JOURNAL).exists()


def test_the_stream_skips_what_is_not_sampled(tiny_model: TinyModel) -> None:
    source = open_model(tiny_model("llama"))
    stream, name = WeightStream(source), "model.layers.0.mlp.down_proj.weight"
    whole = np.concatenate(list(stream.slices(name)))
    sampled = list(stream.slices(name, every=2))
    assert [len(one) for one in sampled] == [16, 16]
    np.testing.assert_array_equal(sampled[1], whole[32:48])
    source.close()


# -- adapters ---------------------------------------------------------------------------------------------------------


def test_an_adapter_is_merged_before_rounding(
    tiny_model: TinyModel, tmp_path: Path, quantizer: NearestQuantizer
) -> None:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    rng = np.random.default_rng(6)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    config = {"peft_type": "LORA", "r": 2, "lora_alpha": 6, "target_modules": ["k_proj"], "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    halves = {
        f"base_model.model.model.layers.{layer}.self_attn.k_proj.lora_{half}.weight": rng.standard_normal(shape)
        for layer in range(3)
        for half, shape in (("A", (2, 64)), ("B", (32, 2)))
    }
    safetensors_numpy.save_file(
        {name: value.astype(np.float32) for name, value in halves.items()}, adapter / "adapter_model.safetensors"
    )
    path, name = tiny_model("qwen2"), "model.layers.2.self_attn.k_proj"
    plain = quantize_model(path, tmp_path / "plain", quantizer=quantizer)
    merged = quantize_model(path, tmp_path / "merged", QuantizeOptions(adapter=adapter), quantizer=quantizer)
    assert merged.adapter is not None
    assert (plain.adapter, merged.adapter.name) == (None, "adapter")
    source = open_model(path)
    original = source.tensor(f"{name}.weight")
    a, b = (halves[f"base_model.model.{name}.lora_{half}.weight"].astype(np.float32) for half in "AB")
    weights = dequantize(original.kind, original.data, original.shape) + np.float32(3) * b @ a
    found = CheckpointSource(tmp_path / "merged")
    tensor = found.tensor(f"{name}.weight")
    expected = quantizer.quantize(weights, QuantFormat.parse(tensor.kind)).dequantize()
    np.testing.assert_allclose(dequantize(tensor.kind, tensor.data, tensor.shape), expected, atol=2e-3)
    assert hashes(tmp_path / "merged")["norm.safetensors"] == hashes(tmp_path / "plain")["norm.safetensors"]
    assert hashes(tmp_path / "merged")["layer_00.safetensors"] != hashes(tmp_path / "plain")["layer_00.safetensors"]
    with pytest.raises(QuantizeError, match="another checkpoint"):
        quantize_model(path, tmp_path / "plain", QuantizeOptions(adapter=adapter), quantizer=quantizer)
    source.close()
    found.close()
