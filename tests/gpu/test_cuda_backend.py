"""The decoder on the GPU against the float32 oracle, on small random models of every family and format."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

from inference.backends.backend import PAGE_SIZE
from inference.backends.cuda_backend import CudaBackend
from inference.backends.cuda_plan import MAX_ROWS
from inference.backends.torch_backend import TorchBackend
from inference.engine.decode_graph import DeviceRunner
from inference.engine.decoder import Decoder, load_weights
from inference.engine.kv_cache import PageTable, pages_for
from inference.engine.memory_plan import estimate_memory
from inference.engine.runner import Row, step_batch
from inference.engine.scheduler import Chunk
from inference.engine.scheduler import Sequence as TokenSequence
from inference.errors import BackendUnavailableError
from inference.formats.model_source import ModelSource, WeightTensor
from inference.formats.random_model import RandomModel
from inference.models.model_spec import ModelSpec
from inference.models.rope import inv_freq
from inference.request import SamplingParams
from kernels.weights.reference import dequantize

NUM_PAGES = 48
CHUNK = 96
GREEDY = SamplingParams()

QWEN2 = ModelSpec(
    "qwen2", 3, 256, 512, 4, 2, 64, vocab_size=1003, max_context=4096, rms_norm_eps=1e-6, rope_theta=1e6,
    qkv_bias=True, tied_head=True,
)  # fmt: skip
SPECS = {
    "qwen2": QWEN2,
    "llama": ModelSpec(
        "llama", 2, 576, 1536, 9, 3, 64, vocab_size=2000, max_context=4096, rms_norm_eps=1e-5, rope_theta=1e5
    ),
    "qwen3": ModelSpec(
        "qwen3", 2, 320, 448, 7, 1, 128, vocab_size=777, max_context=4096, rms_norm_eps=1e-6, rope_theta=1e6,
        qk_norm=True,
    ),
    "wide heads": dataclasses.replace(
        QWEN2, num_layers=2, num_q_heads=16, num_kv_heads=1, head_dim=256, qkv_bias=False
    ),
    "narrow heads": dataclasses.replace(QWEN2, num_layers=2, num_q_heads=3, num_kv_heads=3, head_dim=80),
}  # fmt: skip


class AsKind:
    """A source whose matrices have been turned into another kind of tensor."""

    def __init__(self, source: RandomModel, kind_of: Callable[[str], str]) -> None:
        self._source, self._kind_of = source, kind_of
        self.path, self.spec = source.path, source.spec
        self.tensor_names, self.tokenizer_data, self.close = source.tensor_names, source.tokenizer_data, source.close

    def tensor_kind(self, name: str) -> tuple[str, tuple[int, ...]]:
        kind, shape = self._source.tensor_kind(name)
        return (kind if len(shape) == 1 else self._kind_of(name)), shape

    def tensor(self, name: str) -> WeightTensor:
        tensor, (kind, shape) = self._source.tensor(name), self.tensor_kind(name)
        if kind == tensor.kind:
            return tensor
        values = dequantize(tensor.kind, tensor.data, shape)
        data = values if kind == "f32" else values.astype(np.float16)
        return WeightTensor(name, shape, kind, data.view(np.uint8).reshape(shape[0], -1))


def source_of(spec: ModelSpec, scheme: str) -> ModelSource:
    if scheme == "f16":
        return AsKind(RandomModel("random:test:w4", spec), lambda name: "f16")
    if scheme == "parts differ":
        return AsKind(
            RandomModel("random:test:w4", spec), lambda n: "f32" if "v_proj" in n or "up_proj" in n else "w4g128"
        )
    return RandomModel(f"random:test:{scheme}", spec)


class OnDevice:
    """A model on the GPU and what runs it."""

    def __init__(self, source: ModelSource, graphs: bool = True, poison: int | None = None) -> None:
        spec = source.spec
        self.spec = spec
        self.backend = CudaBackend()
        tensors = {name: source.tensor_kind(name) for name in source.tensor_names()}
        nbytes = self.backend.planned_model_bytes(spec, tensors)
        self.backend.begin_load(spec, nbytes)
        self.decoder = Decoder(spec, self.backend, load_weights(source, self.backend))
        self.backend.allocate(spec, inv_freq(spec), NUM_PAGES, CHUNK + MAX_ROWS)
        if poison is not None:
            self.backend.fill_pages(poison)
        self.runner = DeviceRunner(self.decoder, self.backend, graphs=graphs)

    def step(self, rows: Sequence[Row], ahead: bool = False) -> list[int]:
        ticket = self.runner.launch(rows, ahead)
        assert ticket is not None
        return [choice.token_id for choice in self.runner.collect(ticket)]

    def logits(self, count: int) -> NDArray[np.float32]:
        """Of the last launch."""
        memory = self.backend.memory
        offset = memory.at["logits"] - memory.buffer.pointer
        return memory.buffer.download(np.float32, (count, self.spec.vocab_size), offset)


@pytest.fixture
def on_device(device: object) -> Iterator[Callable[..., OnDevice]]:
    del device  # skips where there is none
    made: list[OnDevice] = []

    def make(source: ModelSource, **options: object) -> OnDevice:
        made.append(OnDevice(source, **options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for model in made:
        model.backend.close()


def oracle(source: ModelSource) -> Decoder:
    backend = TorchBackend()
    decoder = Decoder(source.spec, backend, load_weights(source, backend))
    backend.allocate(source.spec, inv_freq(source.spec), NUM_PAGES, CHUNK)
    return decoder


def sequence(tokens: Sequence[int], pages: Sequence[int], prompt_tokens: int | None = None) -> TokenSequence:
    count = len(tokens) if prompt_tokens is None else prompt_tokens
    return TokenSequence("r", 0, list(tokens), count, 4096, PageTable(list(pages)))


def row(of: TokenSequence, start: int, count: int, sampling: SamplingParams = GREEDY, seed: int = 1) -> Row:
    return Row(Chunk(of, start, count), start + count == len(of.token_ids), sampling, seed)


def close(found: NDArray[np.float32], wanted: NDArray[np.float32], limit: float) -> None:
    assert np.isfinite(found).all()
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert error < limit, f"off by {error:.2e}"


CASES = [(name, "w4") for name in SPECS]
CASES += [("qwen2", scheme) for scheme in ("mixed", "w3", "w8", "f16", "parts differ")]
CASES += [("llama", "mixed"), ("qwen3", "w3")]


@pytest.mark.parametrize(("name", "scheme"), CASES)
def test_logits_are_the_oracles(name: str, scheme: str, on_device: Callable[..., OnDevice]) -> None:
    """A prompt in two chunks beside another one, and then answers beside each other."""
    source = source_of(SPECS[name], scheme)
    device, decoder = on_device(source), oracle(source)
    rng = np.random.default_rng(3)
    first = sequence(rng.integers(0, source.spec.vocab_size, 130).tolist(), [5, 1, 7])
    second = sequence(rng.integers(0, source.spec.vocab_size, 20).tolist(), [3])
    # 8-bit tiles hold float16 weights within 0.4 % of the largest of 32.
    limit = 2e-2 if scheme in ("f16", "parts differ") else 4e-3
    for rows in ([row(first, 0, 80), row(second, 0, 16)], [row(first, 80, 50), row(second, 16, 4)]):
        wanted = decoder.forward(step_batch(rows))
        tokens = device.step(rows)
        assert len(tokens) == len(wanted)
    close(device.logits(2), wanted, limit)
    for _ in range(5):
        for one, token in zip((first, second), tokens, strict=True):
            one.token_ids.append(token)
        rows = [row(one, len(one.token_ids) - 1, 1) for one in (first, second)]
        wanted = decoder.forward(step_batch(rows))
        tokens = device.step(rows)
        close(device.logits(2), wanted, limit)


@pytest.mark.parametrize("name", ["qwen2", "llama"])
def test_graphs_equal_eager_launches_and_poisoned_pages_change_nothing(
    name: str, on_device: Callable[..., OnDevice]
) -> None:
    source = RandomModel("random:test:mixed", SPECS[name])
    found = []
    for options in ({}, {"graphs": False}, {"poison": 0xFF}, {"poison": 0x7B, "graphs": False}):
        device = on_device(source, **options)
        one = sequence(list(range(70)), [2, 0, 9])
        tokens, logits = device.step([row(one, 0, 70)]), []
        for _ in range(70):
            one.token_ids += tokens
            tokens = device.step([row(one, len(one.token_ids) - 1, 1)])
            logits.append(device.logits(1))
        found.append((one.token_ids, np.stack(logits)))
    for tokens, logits in found[1:]:
        assert tokens == found[0][0]
        np.testing.assert_array_equal(logits, found[0][1])


def test_a_rows_logits_are_the_same_bits_in_every_company(on_device: Callable[..., OnDevice]) -> None:
    device = on_device(RandomModel("random:test:w4", SPECS["qwen2"]))
    rng = np.random.default_rng(5)
    sequences = [
        sequence(rng.integers(0, 1000, 20 + 5 * i).tolist(), [3 * i, 3 * i + 1, 3 * i + 2]) for i in range(MAX_ROWS)
    ]
    tokens = [device.step([row(one, 0, len(one.token_ids))])[0] for one in sequences]
    for one, token in zip(sequences, tokens, strict=True):
        one.token_ids.append(token)
    rows = [row(one, len(one.token_ids) - 1, 1) for one in sequences]
    alone = [(device.step([each])[0], device.logits(1)[0]) for each in rows]
    for count in (2, 3, 4, 5, 8, 9, MAX_ROWS):
        together = device.step(rows[:count])
        logits = device.logits(count)
        for place in range(count):
            assert together[place] == alone[place][0]
            np.testing.assert_array_equal(logits[place], alone[place][1])


def test_chunks_and_neighbours_of_a_prompt_change_no_bit(on_device: Callable[..., OnDevice]) -> None:
    device = on_device(RandomModel("random:test:w4", SPECS["qwen2"]))
    rng = np.random.default_rng(6)
    prompt, other = (rng.integers(0, 1000, 90).tolist() for _ in range(2))
    device.step([row(sequence(prompt, [0, 1]), 0, 90)])
    wanted = device.logits(1)[0]
    for cuts in ([1], [89], [10, 64, 65]):
        one, beside = sequence(prompt, [4, 5]), sequence(other, [6, 7])
        for start, end in zip([0, *cuts], [*cuts, 90], strict=True):
            device.step([row(beside, 0, 5), row(one, start, end - start)])
        np.testing.assert_array_equal(device.logits(1)[0], wanted)


def test_planned_and_measured_memory_agree(device: object) -> None:
    """What the driver says is gone against what the plan said, and no allocation after loading."""
    del device
    source = RandomModel("random:qwen2.5-0.5b:w4")
    spec, backend = source.spec, CudaBackend()
    tensors = {name: source.tensor_kind(name) for name in source.tensor_names()}
    before = backend.device_memory(0)
    plan = estimate_memory(
        spec, backend.planned_model_bytes(spec, tensors), backend, free_bytes=before.free_bytes,
        reserve_bytes=before.reserve_bytes, default_context=32768, max_batch_tokens=CHUNK + MAX_ROWS,
    ).checked()  # fmt: skip
    backend.begin_load(spec, plan.weight_bytes)
    decoder = Decoder(spec, backend, load_weights(source, backend))
    backend.allocate(spec, inv_freq(spec), plan.num_pages, CHUNK + MAX_ROWS)
    runner = DeviceRunner(decoder, backend)
    loaded = backend.gpu.allocated_bytes
    one = sequence(list(range(90)), range(pages_for(200)))
    ticket = runner.launch([row(one, 0, 90)], False)
    one.token_ids += [choice.token_id for choice in runner.collect(ticket)]
    runner.collect(runner.launch([row(one, 90, 1)], False))
    assert backend.gpu.allocated_bytes == backend.gpu.peak_bytes == loaded
    taken = before.free_bytes - backend.device_memory(0).free_bytes
    backend.close()
    assert loaded <= plan.total_bytes
    assert taken == pytest.approx(plan.total_bytes, rel=0.03), f"allocated {loaded}"


def test_a_shape_that_the_kernels_do_not_take_is_refused(device: object) -> None:
    del device
    backend = CudaBackend()
    odd = dataclasses.replace(QWEN2, intermediate_size=520)
    with pytest.raises(BackendUnavailableError, match="intermediate size is 520"):
        backend.planned_model_bytes(odd, {})
    backend.close()


def test_pages_hold_what_a_sequence_needs() -> None:
    assert pages_for(130) == 3
    assert PAGE_SIZE == 64
