"""The torch backend: every weight kind through both its forms, against dequantized float64 products."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inference.backends import torch_backend
from inference.backends.backend import PAGE_SIZE, Batch, backend_names, create_backend
from inference.backends.torch_backend import INT4_KINDS, TorchBackend
from inference.errors import BackendUnavailableError
from inference.formats.model_source import WeightTensor
from inference.models.model_spec import ModelSpec
from kernels.weights.reference import BLOCK_LAYOUTS, dequantize
from tests.random_weights import random_weights

SPEC = ModelSpec(
    architecture="qwen2",
    num_layers=2,
    hidden_size=64,
    intermediate_size=96,
    num_q_heads=4,
    num_kv_heads=2,
    head_dim=16,
    vocab_size=50,
    max_context=256,
    rms_norm_eps=1e-6,
    rope_theta=10000.0,
)


def random_tensor(kind: str, shape: tuple[int, int], seed: int = 0) -> WeightTensor:
    def scales(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        return rng.uniform(0.0005, 0.02, count)

    return WeightTensor("w", shape, kind, random_weights(kind, *shape, np.random.default_rng(seed), scales, 0.05))


def exact(tensor: WeightTensor) -> NDArray[np.float64]:
    return dequantize(tensor.kind, tensor.data, tensor.shape).astype(np.float64)


def relative_error(found: NDArray[np.float32], wanted: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


def product_error(found: NDArray[np.float32], x: NDArray[np.float32], weight: NDArray[np.float64]) -> float:
    """Largest error of x W^T as a share of |x| |W|^T, which is what rounding the factors can cause."""
    wanted = x.astype(np.float64) @ weight.T
    return float(np.max(np.abs(found - wanted) / (np.abs(x) @ np.abs(weight).T)))


BFLOAT16_ROUNDING = 2.0**-8


@pytest.mark.parametrize("num_tokens", [1, 4, 5, 33])
@pytest.mark.parametrize("kind", list(BLOCK_LAYOUTS))
@pytest.mark.parametrize(("packed", "tolerance"), [(False, 1e-6), (True, BFLOAT16_ROUNDING)], ids=["oracle", "packed"])
def test_linear_of_every_kind(kind: str, num_tokens: int, packed: bool, tolerance: float) -> None:
    backend = TorchBackend(packed=packed)
    parts = [random_tensor(kind, (48, 512), seed=1), random_tensor(kind, (16, 512), seed=2)]
    biases = [random_tensor("f32", (1, 48), seed=3), random_tensor("f32", (1, 16), seed=4)]
    biases = [dataclasses.replace(bias, shape=(bias.shape[1],)) for bias in biases]
    x = np.random.default_rng(5).standard_normal((num_tokens, 512)).astype(np.float32)
    found = backend.linear(torch.from_numpy(x), backend.linear_weight(parts, biases)).numpy()
    assert found.dtype == np.float32
    found -= np.concatenate([exact(bias) for bias in biases]).astype(np.float32)
    assert product_error(found, x, np.concatenate([exact(part) for part in parts])) < tolerance


def test_parts_of_different_kinds_keep_their_order() -> None:
    kinds = (("q4_k", 32), ("q6_k", 16), ("q4_k", 7))
    parts = [random_tensor(kind, (rows, 256), seed=rows) for kind, rows in kinds]
    x = np.random.default_rng(4).standard_normal((3, 256)).astype(np.float32)
    for packed, tolerance in ((False, 1e-6), (True, BFLOAT16_ROUNDING)):
        backend = TorchBackend(packed=packed)
        found = backend.linear(torch.from_numpy(x), backend.linear_weight(parts)).numpy()
        assert product_error(found, x, np.concatenate([exact(part) for part in parts])) < tolerance


@pytest.mark.parametrize("kind", ["q4_0", "q4_1", "q4_k", "q6_k", "f16"])
def test_packed_embedding_and_tied_head(kind: str) -> None:
    backend = TorchBackend(packed=True)
    table = random_tensor(kind, (64, 256))
    embedding = backend.embedding_weight(table)
    ids = np.array([63, 0, 7, 7], dtype=np.int32)
    assert relative_error(backend.embed(embedding, batch_of(ids)).numpy(), exact(table)[ids]) < BFLOAT16_ROUNDING
    head = backend.head_weight(table, embedding)
    x = np.random.default_rng(1).standard_normal((2, 256)).astype(np.float32)
    assert product_error(backend.logits(torch.from_numpy(x), head), x, exact(table)) < BFLOAT16_ROUNDING


def test_packed_weights_take_what_was_planned() -> None:
    backend = TorchBackend(packed=True)
    for kind in INT4_KINDS:
        tensor = random_tensor(kind, (64, 512))
        (matrix,) = backend.linear_weight([tensor]).matrices
        assert isinstance(matrix, torch_backend._Int4)
        held = matrix.packed.nbytes + matrix.scales_zeros.nbytes
        assert backend.planned_weight_bytes(kind, tensor.shape) == held
        assert held < 64 * 512 * 0.65
    assert backend.planned_weight_bytes("q6_k", (64, 512)) == 64 * 512 * 2
    assert TorchBackend().planned_weight_bytes("q4_k", (64, 512)) == 64 * 512 * 4
    assert backend.planned_weight_bytes("f16", (512,)) == 512 * 4


def test_without_the_private_operation_weights_are_dense(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: torch.Tensor, packed: torch.Tensor, scales_zeros: torch.Tensor) -> torch.Tensor:
        return torch.zeros(x.shape[0], packed.shape[0], dtype=x.dtype)

    monkeypatch.setattr(torch_backend, "_int4_linear", wrong)
    backend = TorchBackend(packed=True)
    tensor = random_tensor("q4_0", (32, 64))
    x = np.ones((1, 64), dtype=np.float32)
    found = backend.linear(torch.from_numpy(x), backend.linear_weight([tensor])).numpy()
    assert product_error(found, x, exact(tensor)) < BFLOAT16_ROUNDING
    assert backend.planned_weight_bytes("q4_0", (32, 64)) == 32 * 64 * 2


def batch_of(ids: NDArray[np.int32]) -> Batch:
    count = len(ids)
    return Batch(
        token_ids=ids,
        positions=np.arange(count, dtype=np.int32),
        query_starts=np.array([0, count], dtype=np.int32),
        context_lengths=np.array([count], dtype=np.int32),
        page_tables=np.array([[1, 0]], dtype=np.int32),
        logit_rows=np.zeros(0, dtype=np.int32),
    )


@pytest.mark.parametrize("packed", [False, True], ids=["oracle", "packed"])
def test_attention_against_float64(packed: bool) -> None:
    backend = TorchBackend(packed=packed)
    backend.allocate(SPEC, np.zeros(8), num_pages=3, max_batch_tokens=128)
    count = PAGE_SIZE + 6
    batch = batch_of(np.zeros(count, dtype=np.int32))
    qkv = np.random.default_rng(0).standard_normal((count, 64 + 2 * 32)).astype(np.float32)
    # Frequencies of zero rotate nothing, so the raw heads are what attention sees.
    q = backend.rope_append(torch.from_numpy(qkv), 1, None, None, batch)
    found = backend.attention(q, 1, batch).numpy()
    heads = qkv.astype(np.float64).reshape(count, 8, 16)
    wanted = np.empty((count, 4, 16))
    for head in range(4):
        keys, values = heads[:, 4 + head // 2], heads[:, 6 + head // 2]
        scores = heads[:, head] @ keys.T / 4.0
        scores[np.triu_indices(count, 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        wanted[:, head] = weights / weights.sum(axis=1, keepdims=True) @ values
    assert relative_error(found, wanted.reshape(count, 64)) < (2e-3 if packed else 1e-6)


def test_pages_take_what_was_planned() -> None:
    for packed in (False, True):
        backend = TorchBackend(packed=packed)
        backend.allocate(SPEC, np.zeros(8), num_pages=5, max_batch_tokens=8)
        assert backend._kv.nbytes == 5 * backend.planned_kv_page_bytes(SPEC)
        growth = backend.planned_workspace_bytes(SPEC, 9) - backend.planned_workspace_bytes(SPEC, 8)
        assert growth > 4 * (SPEC.hidden_size + SPEC.intermediate_size)
        backend.close()
        assert backend._kv.nbytes == 0


def test_registry_builds_by_name_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(backend_names()) >= {"cpu", "torch"}
    assert create_backend("torch", dtype="bfloat16").name == "torch"
    with pytest.raises(BackendUnavailableError, match="there is none of that name"):
        create_backend("tpu")
    with pytest.raises(BackendUnavailableError, match="int3"):
        create_backend("torch", dtype="int3")
    monkeypatch.setitem(__import__("sys").modules, "inference.backends.torch_backend", None)
    with pytest.raises(BackendUnavailableError, match="cannot be imported"):
        create_backend("torch")
