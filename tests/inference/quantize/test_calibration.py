"""The calibration's forward pass: what each matrix reads is what transformers gives it; and the job that uses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from inference.errors import InvalidRequestError
from inference.formats.checkpoint.checkpoint import CheckpointSource
from inference.formats.checkpoint.manifest import MANIFEST
from inference.formats.model_file import open_model
from inference.quantize.calibration import Calibration
from inference.quantize.curvature import curvature_of
from inference.quantize.error_feedback import FeedbackQuantizer
from inference.quantize.job import QuantizeOptions, quantize_model
from inference.quantize.weight_stream import WeightStream

READERS = {
    "self_attn.q_proj": "self_attn.qkv_proj",
    "self_attn.o_proj": "self_attn.o_proj",
    "mlp.up_proj": "mlp.gate_up_proj",
    "mlp.down_proj": "mlp.down_proj",
}


@pytest.mark.parametrize(("family", "tied"), [("qwen2", False), ("llama", True), ("qwen3", False)])
def test_every_matrix_reads_what_transformers_gives_it(
    tiny_model: Callable[..., Path], family: str, tied: bool
) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path = tiny_model(family, tie_word_embeddings=tied, max_position_embeddings=1024)
    ids = np.random.default_rng(0).integers(0, 311, 700).tolist()
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    seen: dict[str, list[np.ndarray]] = {}
    for name, module in model.named_modules():
        if name.endswith(tuple(READERS)) or name == "lm_head":
            module.register_forward_pre_hook(
                lambda _, args, name=name: seen.setdefault(name, []).append(args[0][0].detach().numpy())
            )
    with torch.no_grad():
        for start in (0, 512):
            model(torch.tensor(ids[start : start + 512])[None])

    source = open_model(path)
    calibration = Calibration(WeightStream(source), source.spec, ids)
    for layer in range(source.spec.num_layers):
        found = calibration.layer(layer, wanted=layer != 1)
        assert len(found) == (0 if layer == 1 else 4)
        for module, reader in READERS.items() if found else ():
            wanted = curvature_of(np.concatenate(seen[f"model.layers.{layer}.{module}"])).diagonal()
            np.testing.assert_allclose(found[reader].diagonal(), wanted, rtol=1e-3)
    wanted = curvature_of(np.concatenate(seen["lm_head"])).diagonal()
    np.testing.assert_allclose(calibration.head().diagonal(), wanted, rtol=1e-3)
    source.close()


def text_file(tmp_path: Path, count: int = 400) -> Path:
    words = np.random.default_rng(2).choice(["the", "other", "tone", "is", "near", "us", "today"], count)
    (tmp_path / "text.txt").write_text(" ".join(words.tolist()), encoding="utf-8")
    return tmp_path / "text.txt"


@pytest.mark.parametrize("sizes", [{}, {"hidden_size": 48, "intermediate_size": 80}])
def test_answers_stay_nearer(
    tiny_model: Callable[..., Path], tmp_path: Path, logits_of: Callable[..., np.ndarray], sizes: dict[str, int]
) -> None:
    path, text = tiny_model("qwen2", **sizes), text_file(tmp_path)
    # A model of random weights has learned nothing that texts have in common: the words must be the same.
    words = "the other is near us today the tone is the other " * 3
    expected, losses = logits_of(path, "torch", words), []
    for calibration in (text, None):
        out = tmp_path / str(calibration is None)
        recipe = quantize_model(path, out, QuantizeOptions("w4-all", 32, calibration=calibration, threads=1))
        assert ("calibrated on" in recipe.method) == (calibration is not None)
        losses.append(float(np.linalg.norm(logits_of(out, "torch", words) - expected)))
    assert losses[0] < 0.9 * losses[1]


def test_going_on_after_a_stop_gives_the_same(tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    class Stopped(FeedbackQuantizer):
        calls = 0

        def quantize(self, *arguments: object) -> object:  # type: ignore[override]
            self.calls += 1
            if self.calls == 12:
                raise KeyboardInterrupt
            return super().quantize(*arguments)  # type: ignore[arg-type]

    path, options = tiny_model("llama"), QuantizeOptions("w3", calibration=text_file(tmp_path), threads=1)
    stopped = Stopped(1)
    with pytest.raises(KeyboardInterrupt):
        quantize_model(path, tmp_path / "out", options, quantizer=stopped)
    stopped.close()
    quantize_model(path, tmp_path / "out", options)
    quantize_model(path, tmp_path / "calm", options)
    assert (tmp_path / "out" / MANIFEST).read_bytes() == (tmp_path / "calm" / MANIFEST).read_bytes()
    CheckpointSource(tmp_path / "out").close()


def test_texts_that_are_no_good(tiny_model: Callable[..., Path], tmp_path: Path) -> None:
    path = tiny_model("llama")
    with pytest.raises(InvalidRequestError, match=r"absent\.txt cannot be read"):
        quantize_model(path, tmp_path / "out", QuantizeOptions(calibration=tmp_path / "absent.txt"))
    with pytest.raises(InvalidRequestError, match="must have 256 or more"):
        quantize_model(path, tmp_path / "out", QuantizeOptions(calibration=text_file(tmp_path, 10), threads=1))
