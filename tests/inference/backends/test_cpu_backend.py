"""The cpu backend under the decoder: against torch, replayed against direct, planned against taken."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

from inference.backends import cpu_program, cpu_self_check
from inference.backends.backend import PAGE_SIZE, Batch, create_backend
from inference.backends.cpu_backend import CpuBackend
from inference.backends.cpu_self_check import random_matrix
from inference.engine.decoder import Decoder, load_weights
from inference.errors import BackendUnavailableError
from inference.formats.model_file import open_model
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from inference.models.rope import inv_freq
from inference.text.tokenizer import Tokenizer
from kernels.cpu import library as lib
from kernels.errors import CompileError, ContractError

PAGES = 12
MAX_TOKENS = 40


def batch_of(*sequences, wanted=None):
    """A step of sequences (first page, start, token ids); the last row of each is wanted."""
    ids = [token for _, _, tokens in sequences for token in tokens]
    starts = np.cumsum([0, *(len(tokens) for _, _, tokens in sequences)]).astype(np.int32)
    positions = np.concatenate([np.arange(start, start + len(tokens)) for _, start, tokens in sequences])
    tables = np.array([[page, page + 1, page + 2] for page, _, _ in sequences], np.int32)
    lengths = np.array([start + len(tokens) for _, start, tokens in sequences], np.int32)
    rows = starts[1:] - 1 if wanted is None else np.array(wanted, np.int32)
    return Batch(np.array(ids, np.int32), positions.astype(np.int32), starts, lengths, tables, rows)


@pytest.fixture
def open_decoder():
    """`open_decoder(path, backend, **options)`; everything is closed at the end."""
    opened = []

    def make(path, backend="cpu", **options):
        source, made = open_model(path), create_backend(backend, **options)
        opened.extend([source, made])
        decoder = Decoder(source.spec, made, load_weights(source, made))
        made.allocate(source.spec, inv_freq(source.spec), PAGES, MAX_TOKENS)
        return decoder, made

    yield make
    for one in opened:
        one.close()


def answer(decoder, steps=12, first=(5, 17, 3, 250, 9)):
    """Logits of a prompt and of greedy steps after it."""
    logits = [np.array(decoder.forward(batch_of((2, 0, list(first)))))]
    for position in range(len(first), len(first) + steps):
        logits.append(np.array(decoder.forward(batch_of((2, position, [int(logits[-1][0].argmax())])))))
    return np.concatenate(logits)


@pytest.mark.parametrize("family", ["qwen2", "llama", "qwen3"])
@pytest.mark.parametrize("tied", [False, True])
def test_float32_models_compute_what_torch_computes(open_decoder, save_tiny_model, family, tied):
    path = save_tiny_model(family, tie_word_embeddings=tied)
    found, wanted = (answer(open_decoder(path, backend)[0]) for backend in ("cpu", "torch"))
    assert found.shape == wanted.shape
    # Keys and values are float16 here.
    np.testing.assert_allclose(found, wanted, atol=4e-3 * np.abs(wanted).max())


def test_replayed_steps_equal_direct_ones(open_decoder, save_tiny_model, monkeypatch):
    path = save_tiny_model("qwen2")
    replayed = answer(open_decoder(path)[0])
    monkeypatch.setattr(cpu_program, "MAX_TOKENS", 0)
    np.testing.assert_array_equal(answer(open_decoder(path)[0]), replayed)


def test_a_row_is_bitwise_the_same_alone_and_in_a_batch(open_decoder, save_tiny_model):
    decoder, _ = open_decoder(save_tiny_model("llama"))
    prompts = [[7, 8, 9], [1, 2, 3, 4, 5, 6, 7], [300]]
    alone = [np.array(decoder.forward(batch_of((3 * i, 0, p)))) for i, p in enumerate(prompts)]
    together = decoder.forward(batch_of(*((3 * i, 0, p) for i, p in enumerate(prompts))))
    np.testing.assert_array_equal(together, np.concatenate(alone))
    steps = [(0, 3, [11]), (3, 7, [12]), (6, 1, [13])]
    alone = [np.array(decoder.forward(batch_of(step))) for step in steps]
    for _ in range(3):
        np.testing.assert_array_equal(decoder.forward(batch_of(*steps)), np.concatenate(alone))


def test_a_step_that_was_given_up_can_be_repeated(open_decoder, save_tiny_model):
    decoder, _ = open_decoder(save_tiny_model("qwen2"))
    wanted = answer(decoder)
    stops = iter([False, True] * 20)
    decoder.forward(batch_of((2, 0, [5, 17, 3, 250, 9])))
    for row in range(1, 5):
        step = batch_of((2, 4 + row, [int(wanted[row - 1].argmax())]))
        assert decoder.forward(step, lambda: next(stops)) is None
        np.testing.assert_array_equal(decoder.forward(step)[0], wanted[row])


def test_another_chain_of_calls_leaves_the_replay(open_decoder, save_tiny_model):
    decoder, backend = open_decoder(save_tiny_model("qwen2"))
    weights, eps = decoder._weights, decoder.spec.rms_norm_eps
    step = batch_of((2, 0, [5]))
    for _ in range(2):
        decoder.forward(step)
    x = backend.embed(weights.embedding, step)
    found = np.array(backend.rms_norm(x, weights.norm, eps))  # the notes have the first layer's norm here
    rows = backend.embed(weights.embedding, batch_of((2, 0, [5]), wanted=[]))
    np.testing.assert_array_equal(found, backend.rms_norm(rows, weights.norm, eps))


def test_chunks_without_logits_are_computed_at_once(open_decoder, save_tiny_model):
    decoder, _ = open_decoder(save_tiny_model("qwen2"))
    tokens = [(7 * i) % 300 for i in range(30)]
    wanted = np.array(decoder.forward(batch_of((2, 0, tokens))))
    for start in range(0, 24, 4):
        assert decoder.forward(batch_of((5, start, tokens[start : start + 4]), wanted=[])).shape == (0, 311)
    np.testing.assert_array_equal(decoder.forward(batch_of((5, 24, tokens[24:]))), wanted)


def test_more_rows_of_logits_than_have_memory_of_their_own(open_decoder, save_tiny_model):
    decoder, _ = open_decoder(save_tiny_model("qwen2"))
    tokens = list(range(20, 40))
    every = np.array(decoder.forward(batch_of((2, 0, tokens), wanted=range(20))))
    np.testing.assert_array_equal(decoder.forward(batch_of((2, 0, tokens), wanted=[3, 19])), every[[3, 19]])


@pytest.fixture
def backend():
    made = CpuBackend(threads=2)
    yield made
    made.close()


SPEC = ModelSpec("qwen2", 3, 256, 512, 4, 2, 64, 1000, 4096, 1e-6, 10000.0)


@pytest.mark.parametrize("kind", ["q4_0", "q5_0", "q8_0", "q4_k", "q6_k", "f16", "f32"])
def test_weights_take_what_was_planned(backend, kind):
    before = backend._arena.used_bytes
    tensor = random_matrix(kind, 100, 256, seed=0)
    backend.linear_weight([tensor])
    assert backend._arena.used_bytes - before == backend.planned_weight_bytes(kind, (100, 256))
    backend.embedding_weight(tensor)
    assert abs(backend._arena.used_bytes - before - 2 * backend.planned_weight_bytes(kind, (100, 256))) <= 64


def test_pages_and_workspace_take_what_was_planned(backend):
    backend.allocate(SPEC, inv_freq(SPEC), 7, 33)
    assert backend._memory.pages.nbytes == 7 * backend.planned_kv_page_bytes(SPEC) == 7 * 3 * 2 * 2 * 64 * PAGE_SIZE * 2
    head = backend.head_weight(random_matrix("q8_0", 1000, 256, seed=0), None)
    taken = sum(buffer.nbytes for buffer in backend._memory.buffers.values()) + backend._memory.workspace._memory.nbytes
    assert taken + head.memory.nbytes == backend.planned_workspace_bytes(SPEC, 33)


@pytest.mark.parametrize("kind", ["q6_k", "q8_0", "q4_k"])
def test_a_tied_head_shares_the_tables_memory(backend, kind):
    tensor = random_matrix(kind, 90, 256, seed=2)
    table = backend.embedding_weight(tensor)
    before = backend._arena.used_bytes
    tied, own = backend.head_weight(tensor, table), backend.head_weight(tensor, None)
    assert backend._arena.used_bytes - before <= backend.planned_weight_bytes(kind, (90, 256)) + 64
    x = np.random.default_rng(0).standard_normal((3, 256)).astype(np.float32)
    np.testing.assert_array_equal(np.array(backend.logits(x, tied)), backend.logits(x, own))


@pytest.mark.parametrize("tied", [False, True])
def test_exact_logits_are_those_of_the_linear(tied):
    tensor = random_matrix("q6_k", 3000, 256, seed=2)
    x = np.random.default_rng(0).standard_normal((2, 256)).astype(np.float32)
    exact, quick = CpuBackend(threads=2, exact_logits=True), CpuBackend(threads=2)
    wanted = np.array(exact.linear(x, exact.linear_weight([tensor])))
    heads = [one.head_weight(tensor, one.embedding_weight(tensor) if tied else None) for one in (exact, quick)]
    np.testing.assert_array_equal(np.array(exact.logits(x, heads[0])), wanted)
    assert not np.array_equal(np.array(quick.logits(x, heads[1])), wanted)
    exact.close()
    quick.close()


def test_vectors_of_all_float_kinds(backend):
    values = np.array([1.5, -2.0, 0.25], np.float32)
    wide = values.view(np.uint32) >> 16
    for kind, data in (("f32", values), ("f16", values.astype(np.float16)), ("bf16", wide.astype(np.uint16))):
        tensor = WeightTensor("v", (3,), kind, data.view(np.uint8).reshape(1, -1))
        np.testing.assert_array_equal(backend.vector(tensor), values)
    with pytest.raises(ContractError, match="q8_0"):
        backend.vector(WeightTensor("v", (32,), "q8_0", np.zeros((1, 34), np.uint8)))


def test_nothing_grows_after_the_allocation(backend):
    weight = backend.linear_weight([random_matrix("q4_k", 16, 256, seed=0)])
    backend.linear(np.zeros((100, 256), np.float32), weight)
    backend.allocate(SPEC, inv_freq(SPEC), 4, 16)
    with pytest.raises(ContractError, match="17 tokens"):
        backend.linear(np.zeros((17, 256), np.float32), weight)
    with pytest.raises(ContractError, match="width 128"):
        backend.linear(np.zeros((1, 128), np.float32), weight)


def test_a_gated_weight_has_two_parts_of_equal_height(backend):
    parts = [random_matrix("q4_0", n, 64, seed=n) for n in (20, 30)]
    with pytest.raises(ContractError, match="gate and up"):
        backend.gated_linear(np.zeros((1, 64), np.float32), backend.linear_weight(parts))


def test_a_closed_backend_is_not_used_again():
    made = CpuBackend(threads=1)
    weight = made.linear_weight([random_matrix("f32", 16, 8, seed=0)])
    made.close()
    made.close()
    with pytest.raises(ContractError, match="closed"):
        made.linear(np.zeros((1, 8), np.float32), weight)


def test_threads_are_those_asked_for():
    for asked in (1, 3):
        made = CpuBackend(threads=asked)
        assert made.threads == asked
        made.close()
    made = CpuBackend()
    assert made.threads == lib.physical_cores() >= 1
    made.close()


def test_kernels_that_cannot_be_built_are_a_reason(monkeypatch):
    def fail(variant=None):
        raise CompileError("The compiler failed with status 1.", "linear.c:3: error: no such thing")

    monkeypatch.setattr(lib, "load_library", fail)
    with pytest.raises(BackendUnavailableError, match="no such thing") as caught:
        create_backend("cpu")
    assert caught.value.backend == "cpu"


@pytest.mark.parametrize("kind", ["q4_k", "bf16"])
def test_kernels_that_compute_wrongly_are_a_reason(monkeypatch, kind):
    right = cpu_self_check.dequantize

    def wrong(of_kind, data, shape):
        return np.roll(right(of_kind, data, shape), of_kind == kind, axis=1)

    monkeypatch.setattr(cpu_self_check, "dequantize", wrong)
    with pytest.raises(BackendUnavailableError, match=f"kernel for {kind} is off by"):
        CpuBackend(threads=1)


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's list of mappings")
def test_packing_gives_the_pages_of_a_mapped_file_back(backend, tmp_path):
    tensor = random_matrix("f32", 2048, 1024, seed=0)
    (tmp_path / "weights").write_bytes(tensor.data.tobytes())
    mapped = np.memmap(tmp_path / "weights", np.uint8, "r").view(np.ndarray).reshape(2048, -1)

    def mapped_kib():
        lines = (line.split() for line in Path("/proc/self/smaps").read_text().splitlines())
        inside = False
        for line in lines:
            inside = inside or line[-1] == str(tmp_path / "weights")
            if inside and line[0] == "Rss:":
                return int(line[1])
        raise AssertionError("the file is not mapped")

    assert mapped.sum() > 0
    assert mapped_kib() == 8192
    weight = backend.linear_weight([WeightTensor("w", (2048, 1024), "f32", mapped)])
    assert mapped_kib() <= 8
    np.testing.assert_array_equal(mapped, tensor.data)
    x = np.eye(4, 1024, dtype=np.float32)
    np.testing.assert_array_equal(backend.linear(x, weight), tensor.data.view(np.float32).T[:4])
    with_copy = backend.linear_weight([tensor])  # memory of our own is left alone
    np.testing.assert_array_equal(mapped, tensor.data)
    assert with_copy.num_bytes == weight.num_bytes


def check_real_heads(path, open_decoder, monkeypatch):
    """Greedy choices and likely logits of a real model equal those of the whole head, over real text."""
    monkeypatch.setattr(sys.modules[__name__], "PAGES", 4)
    monkeypatch.setattr(sys.modules[__name__], "MAX_TOKENS", 64)
    quick, _ = open_decoder(path)
    exact, _ = open_decoder(path, exact_logits=True)
    depth = quick._weights.head.struct.depth
    source = open_model(path)
    text = (
        Path(__file__).read_text(encoding="utf-8") + "今天天气很好,我们去公园散步吧。这台打印机从星期五起就坏了。" * 12
    )
    tokens = Tokenizer.from_data(source.tokenizer_data()).encode_text(text)
    source.close()
    tokens, checked, near = tokens[:900] + tokens[-124:], 0, 0
    for start in range(0, len(tokens), 64):
        step = batch_of((1, 0, tokens[start : start + 64]), wanted=range(64))
        found, wanted = np.array(quick.forward(step)), np.array(exact.forward(step))
        best = wanted.max(axis=1, keepdims=True).astype(np.float64)
        mass = np.log(np.exp(wanted - best).sum(axis=1, keepdims=True))
        likely = wanted > best + mass - depth
        np.testing.assert_array_equal(found.argmax(axis=1), wanted.argmax(axis=1))
        np.testing.assert_array_equal(found[likely], wanted[likely])
        found_mass = np.log(np.exp(found - best).sum(axis=1, keepdims=True))
        assert np.abs(found_mass - mass).max() < 0.06, "probabilities are within 6 %"
        checked, near = checked + len(found), near + int((found != wanted).sum())
    assert checked == 1024
    assert near > 0, "the first pass alone must have served for some"


def test_smollm2s_head_loses_nothing_that_matters(open_decoder, stored_model, monkeypatch):
    check_real_heads(stored_model("smollm2-135m-instruct"), open_decoder, monkeypatch)


def test_single_rows_get_exact_logits_also_where_a_step_is_replayed(open_decoder, stored_model, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "PAGES", 6)
    path = stored_model("smollm2-135m-instruct")
    quick, exact = open_decoder(path)[0], open_decoder(path, exact_logits=True)[0]
    for position, asked in enumerate(([0, 0], [0, 1], [1, 0], [0, 0], [1, 1])):
        step = batch_of((0, position, [5]), (3, position, [17]))
        wanted, rough = np.array(exact.forward(step)), np.array(quick.forward(step))
        found = quick.forward(dataclasses.replace(step, exact_rows=np.array(asked, np.bool_)))
        assert (rough != wanted).any(axis=1).all()
        np.testing.assert_array_equal(found, np.where(np.array(asked)[:, None] == 1, wanted, rough))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_qwens_head_loses_nothing_that_matters(open_decoder, stored_model, monkeypatch):
    check_real_heads(stored_model("qwen2.5-coder-1.5b-instruct"), open_decoder, monkeypatch)
