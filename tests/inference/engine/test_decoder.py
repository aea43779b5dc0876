"""The decoder against transformers, on tiny random models of every family."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

from inference.backends.backend import PAGE_SIZE, Backend, Batch, create_backend
from inference.backends.torch_backend import TorchBackend
from inference.engine.decoder import Decoder, LoadStopped, load_weights
from inference.errors import BackendUnavailableError
from inference.formats.model_file import open_model
from inference.models.rope import inv_freq

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

TIED = {"tie_word_embeddings": True}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2 untied": ("qwen2", {}),
    "qwen2 tied, one kv head, odd width": (
        "qwen2",
        {**TIED, "num_key_value_heads": 1, "hidden_size": 40, "intermediate_size": 57},
    ),
    "qwen2 six heads over two": ("qwen2", {"num_attention_heads": 6, "hidden_size": 36}),
    "llama untied, no grouping": ("llama", {"num_key_value_heads": 4}),
    "llama tied, nine heads over three, like SmolLM2": (
        "llama",
        {**TIED, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 54, "vocab_size": 97},
    ),
    "llama three heads over one, llama3 rope": (
        "llama",
        {"num_attention_heads": 3, "num_key_value_heads": 1, "rope_parameters": LLAMA3_ROPE},
    ),
    "llama linear rope": ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}}),
    "qwen3 untied, heads wider than hidden": ("qwen3", {"head_dim": 32}),
    "qwen3 tied, five heads": (
        "qwen3",
        {**TIED, "num_attention_heads": 5, "num_key_value_heads": 1, "head_dim": 10},
    ),
}

TOLERANCE = 1e-4


class Paged:
    """A decoder, over the torch oracle unless told otherwise, whose sequences lie on scattered pages."""

    def __init__(self, path: Path, backend: Backend | None = None) -> None:
        source = open_model(path)
        self.backend = TorchBackend() if backend is None else backend
        self.decoder = Decoder(source.spec, self.backend, load_weights(source, self.backend))
        self.backend.allocate(source.spec, inv_freq(source.spec), num_pages=24, max_batch_tokens=512)
        self._free = list(np.random.default_rng(1).permutation(24))
        self._tables: dict[str, list[int]] = {}
        self._lengths: dict[str, int] = {}

    def step(self, chunks: dict[str, Sequence[int]]) -> NDArray[np.float32]:
        """Appends a chunk to each named sequence; returns the logits of every token, sequence by sequence."""
        positions, starts = [], [0]
        for name, chunk in chunks.items():
            start = self._lengths.get(name, 0)
            self._lengths[name] = start + len(chunk)
            table = self._tables.setdefault(name, [])
            while len(table) * PAGE_SIZE < self._lengths[name]:
                table.append(int(self._free.pop()))
            positions += range(start, start + len(chunk))
            starts.append(starts[-1] + len(chunk))
        tables = np.full((len(chunks), 8), -1, dtype=np.int32)
        for row, name in enumerate(chunks):
            tables[row, : len(self._tables[name])] = self._tables[name]
        result = self.decoder.forward(
            Batch(
                token_ids=np.array([token for chunk in chunks.values() for token in chunk], dtype=np.int32),
                positions=np.array(positions, dtype=np.int32),
                query_starts=np.array(starts, dtype=np.int32),
                context_lengths=np.array([self._lengths[name] for name in chunks], dtype=np.int32),
                page_tables=tables,
                logit_rows=np.arange(starts[-1], dtype=np.int32),
            )
        )
        assert result is not None
        # A backend may give out the memory of its next step.
        return result.copy()


def expected_logits(path: Path, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        logits: NDArray[np.float32] = model(torch.from_numpy(tokens)[None]).logits[0].numpy()
    return logits


@pytest.fixture(scope="module", params=list(CASES), ids=lambda name: name.replace(",", ""))
def model_path(request: pytest.FixtureRequest, save_tiny_model: Callable[..., Path]) -> Path:
    family, changes = CASES[request.param]
    return save_tiny_model(family, **changes)


def random_tokens(path: Path, count: int, seed: int = 0) -> NDArray[np.int64]:
    vocab = transformers.AutoConfig.from_pretrained(path).vocab_size
    return np.random.default_rng(seed).integers(0, vocab, count)


def test_whole_prompt_equals_transformers(model_path: Path) -> None:
    tokens = random_tokens(model_path, 150)
    found = Paged(model_path).step({"a": tokens.tolist()})
    wanted = expected_logits(model_path, tokens)
    assert np.abs(wanted).max() > 0.5
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)


def test_chunks_and_single_tokens_equal_transformers(model_path: Path) -> None:
    tokens = random_tokens(model_path, 200, seed=3)
    paged = Paged(model_path)
    bounds = [0, 61, 64, 65, 129, 190, *range(191, 201)]
    rows = [paged.step({"a": tokens[start:end].tolist()}) for start, end in itertools.pairwise(bounds)]
    np.testing.assert_allclose(np.concatenate(rows), expected_logits(model_path, tokens), rtol=0, atol=TOLERANCE)


def test_sequences_in_one_step_do_not_see_each_other(model_path: Path) -> None:
    names = ("a", "b", "c")
    tokens = {name: random_tokens(model_path, 90, seed=index) for index, name in enumerate(names)}
    paged = Paged(model_path)
    # Prefill and decode are mixed: "a" starts first and goes on by one token while the others bring chunks.
    plan = [{"a": 70}, {"a": 1, "b": 80}, {"b": 1, "c": 33, "a": 1}, {"c": 57, "a": 18, "b": 9}]
    found: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
    done = dict.fromkeys(names, 0)
    for step in plan:
        chunks = {name: tokens[name][done[name] : done[name] + count].tolist() for name, count in step.items()}
        logits, row = paged.step(chunks), 0
        for name, chunk in chunks.items():
            found[name].append(logits[row : row + len(chunk)])
            row += len(chunk)
            done[name] += len(chunk)
    assert done == dict.fromkeys(names, 90)
    for name in names:
        wanted = expected_logits(model_path, tokens[name])
        np.testing.assert_allclose(np.concatenate(found[name]), wanted, rtol=0, atol=TOLERANCE)


def test_loading_reports_progress_and_stops_when_asked(save_tiny_model: Callable[..., Path]) -> None:
    source = open_model(save_tiny_model("qwen2"))
    shares: list[float] = []
    load_weights(source, TorchBackend(), shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    shares.clear()
    with pytest.raises(LoadStopped):
        load_weights(source, TorchBackend(), shares.append, lambda: len(shares) > 5)
    assert len(shares) == 6
    assert shares[-1] < 1.0


def test_a_step_is_given_up_between_layers_and_can_be_run_again(save_tiny_model: Callable[..., Path]) -> None:
    path = save_tiny_model("qwen2")
    tokens = random_tokens(path, 100)
    paged = Paged(path)
    batch = Batch(
        token_ids=tokens.astype(np.int32),
        positions=np.arange(100, dtype=np.int32),
        query_starts=np.array([0, 100], dtype=np.int32),
        context_lengths=np.array([100], dtype=np.int32),
        page_tables=np.array([[5, 3]], dtype=np.int32),
        logit_rows=np.array([99], dtype=np.int32),
    )
    answers = iter([False, True])
    assert paged.decoder.forward(batch, lambda: next(answers)) is None
    assert list(answers) == []
    again = paged.decoder.forward(batch, lambda: False)
    assert again is not None
    np.testing.assert_allclose(again[0], expected_logits(path, tokens)[-1], rtol=0, atol=TOLERANCE)


def test_no_logits_are_computed_where_none_are_wanted(save_tiny_model: Callable[..., Path]) -> None:
    paged = Paged(save_tiny_model("llama"))
    nothing = np.zeros(0, dtype=np.int32)
    batch = Batch(
        token_ids=np.array([1, 2], dtype=np.int32),
        positions=np.array([0, 1], dtype=np.int32),
        query_starts=np.array([0, 2], dtype=np.int32),
        context_lengths=np.array([2], dtype=np.int32),
        page_tables=np.array([[0]], dtype=np.int32),
        logit_rows=nothing,
    )
    logits = paged.decoder.forward(batch)
    assert logits is not None
    assert logits.shape == (0, 311)


@pytest.fixture
def cpu_backend() -> Iterator[Backend]:
    try:
        backend = create_backend("cpu", threads=2, exact_logits=True)
    except BackendUnavailableError as error:
        pytest.skip(str(error))
    yield backend
    backend.close()


def test_cpu_kernels_stay_as_close_to_the_oracle_as_their_rounding_lets_them(
    model_path: Path, cpu_backend: Backend
) -> None:
    """int8 activations in groups round each product by up to 1 / 254 of its group's largest, float16 KV far less."""
    tokens = random_tokens(model_path, 150).tolist()
    found, wanted = Paged(model_path, cpu_backend).step({"a": tokens}), Paged(model_path).step({"a": tokens})
    error = np.linalg.norm(found - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert error.max() < 0.05
    assert np.median(error) < 0.02


def test_cpu_kernels_give_a_token_the_same_bits_in_every_company(model_path: Path, cpu_backend: Backend) -> None:
    tokens = random_tokens(model_path, 140).tolist()
    neighbour = random_tokens(model_path, 30, seed=5).tolist()
    paged = Paged(model_path, cpu_backend)
    whole = paged.step({"a": tokens})
    rows = [paged.step({"b": tokens[:70]})]
    rows.append(paged.step({"b": tokens[70:71]}))
    rows.append(paged.step({"c": neighbour, "b": tokens[71:139]})[len(neighbour) :])
    rows.append(paged.step({"b": tokens[139:], "c": neighbour[:1]})[:1])
    np.testing.assert_array_equal(np.concatenate(rows), whole)
