"""The matrix-vector kernel against the float64 product of the dequantized weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.device.driver import Device
from kernels.launch.linear import DeviceMatrix, Linear
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix, pack

EPS = 1e-6
FORMATS = [f"w{bits}g{group}{minima}" for bits in (3, 4, 8) for group in (32, 64, 128) for minima in ("", "m")]


def random_matrix(rng: np.random.Generator, name: str, rows: int, columns: int) -> QuantizedMatrix:
    of_format = QuantFormat.parse(name)
    low, high = of_format.limits
    groups = -(-columns // of_format.group_size)
    codes = rng.integers(low, high, (rows, columns), dtype=np.int8, endpoint=True)
    scales = rng.uniform(0.002, 0.02, (rows, groups)).astype(np.float16)
    minima = None if of_format.symmetric else rng.normal(0, 0.02, (rows, groups)).astype(np.float16)
    return QuantizedMatrix(of_format, codes, scales, minima)


class Product:
    """One product on the device, with everything that it reads and writes between guards."""

    def __init__(self, device: Device, guarded: Callable[..., Any], matrix: QuantizedMatrix, bias: Any = None) -> None:
        rows, columns = matrix.codes.shape
        self.device, self.guarded, self.weights = device, guarded, matrix.dequantize().astype(np.float64)
        self.bias = np.zeros(rows) if bias is None else bias.astype(np.float64)
        bias_pointer = 0 if bias is None else guarded(bias).pointer
        self.matrix = DeviceMatrix(guarded(pack(matrix)).pointer, rows, columns, matrix.format, bias_pointer)

    def run(self, x: NDArray[np.float32], sm_count: int = 0, norm: Any = None, **options: Any) -> NDArray[np.float32]:
        out_rows = self.matrix.rows // 2 if options.get("epilogue") == "gated" else self.matrix.rows
        out = self.guarded(len(x) * out_rows * 4)
        if "residual" in options:
            out.upload(options["residual"])
            options["residual"] = out.pointer
        options["norm"] = 0 if norm is None else self.guarded(norm).pointer
        linear = Linear(self.device, sm_count)
        linear.matvec(self.guarded(x).pointer, len(x), self.matrix, out.pointer, eps=EPS, **options)
        return out.download(np.float32, (len(x), out_rows))

    def expected(self, x: NDArray[np.float32], norm: Any = None) -> NDArray[np.float64]:
        wide = x.astype(np.float64)
        if norm is not None:
            wide = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + EPS) * norm.astype(np.float64)
        return wide @ self.weights.T + self.bias


def error(out: NDArray[Any], expected: NDArray[Any]) -> float:
    return float(np.linalg.norm(out - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_and_number_of_tokens(device, guarded, rng, name):
    columns = int(rng.choice([128, 576, 896]))
    product = Product(device, guarded, random_matrix(rng, name, 48, columns), rng.normal(size=48).astype(np.float32))
    x = rng.normal(size=(16, columns)).astype(np.float32)
    outs = [product.run(x[:tokens]) for tokens in range(1, 17)]
    assert error(outs[-1], product.expected(x)) < 2e-4
    for tokens, out in enumerate(outs, start=1):
        np.testing.assert_array_equal(out, outs[-1][:tokens], err_msg=f"{tokens} tokens")


@pytest.mark.parametrize("name", ["w4g128", "w3g128", "w4g32m", "w8g64"])
@pytest.mark.parametrize("rows", [16, 5000])
@pytest.mark.parametrize("columns", [132, 2048, 4864, 11008, 18944])
def test_shapes(device, guarded, rng, name, rows, columns):
    rows = 400 if columns > 5000 and rows == 5000 else rows
    product = Product(device, guarded, random_matrix(rng, name, rows, columns))
    x = rng.normal(size=(16, columns)).astype(np.float32)
    out = product.run(x)
    assert error(out, product.expected(x)) < 2e-4
    np.testing.assert_array_equal(product.run(x[3:4]), out[3:4], err_msg="alone")
    np.testing.assert_array_equal(product.run(x[5:13]), out[5:13], err_msg="eight of them")
    np.testing.assert_array_equal(product.run(x[2:6], sm_count=7), out[2:6], err_msg="on 7 SMs")


@pytest.mark.parametrize("name", ["w4g128", "w3g128", "w4g32m", "w8g64"])
@pytest.mark.parametrize("columns", [2048, 3584, 11008])
def test_where_shared_memory_is_small(device, guarded, rng, name, columns, monkeypatch):
    monkeypatch.setattr(device, "shared_bytes_per_block", 99 << 10)  # sm_86
    product = Product(device, guarded, random_matrix(rng, name, 608, columns))
    x = rng.normal(size=(16, columns)).astype(np.float32)
    norm = rng.normal(1, 0.2, columns).astype(np.float32)
    gate, up = np.split(product.expected(x, norm), 2, axis=1)
    out = product.run(x, sm_count=3, norm=norm, epilogue="gated")
    assert error(out, gate / (1 + np.exp(-gate)) * up) < 2e-4
    for tokens in (1, 2, 3, 8, 9, 13):
        few = product.run(x[:tokens], sm_count=5, norm=norm, epilogue="gated")
        np.testing.assert_array_equal(few, out[:tokens], err_msg=f"{tokens} tokens")


def test_rows_that_do_not_fill_a_tile(device, guarded, rng):
    product = Product(device, guarded, random_matrix(rng, "w4g64", 37, 640))
    x = rng.normal(size=(3, 640)).astype(np.float32)
    assert error(product.run(x), product.expected(x)) < 2e-4


@pytest.mark.parametrize("tokens", [1, 8, 16])
def test_the_longest_rows(device, guarded, rng, tokens):
    product = Product(device, guarded, random_matrix(rng, "w8g32m", 48, 32768))
    x = rng.normal(size=(tokens, 32768)).astype(np.float32)
    norm = rng.normal(1, 0.2, 32768).astype(np.float32)
    assert error(product.run(x, norm=norm), product.expected(x, norm)) < 2e-4


@pytest.mark.parametrize("tokens", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("columns", [896, 3584])
def test_normalized(device, guarded, rng, tokens, columns):
    product = Product(device, guarded, random_matrix(rng, "w4g128", 256, columns))
    x = (rng.normal(size=(tokens, columns)) * 37).astype(np.float32)
    norm = rng.normal(1, 0.5, columns).astype(np.float32)
    assert error(product.run(x, norm=norm), product.expected(x, norm)) < 2e-4


@pytest.mark.parametrize("name", ["w4g128", "w3g32m"])
@pytest.mark.parametrize("tokens", [1, 4, 7, 15])
def test_added_to_the_residual_in_place(device, guarded, rng, name, tokens):
    product = Product(device, guarded, random_matrix(rng, name, 2048, 1536), rng.normal(size=2048).astype(np.float32))
    x = rng.normal(size=(tokens, 1536)).astype(np.float32)
    residual = rng.normal(size=(tokens, 2048)).astype(np.float32)
    out = product.run(x, epilogue="add", residual=residual)
    assert error(out, product.expected(x) + residual) < 2e-4


@pytest.mark.parametrize("name", ["w4g128", "w3g128", "w4g32m"])
@pytest.mark.parametrize("tokens", [1, 2, 8, 16])
@pytest.mark.parametrize("inner", [48, 4864])
def test_gated(device, guarded, rng, name, tokens, inner):
    product = Product(device, guarded, random_matrix(rng, name, 2 * inner, 896))
    x = rng.normal(size=(tokens, 896)).astype(np.float32)
    norm = rng.normal(1, 0.2, 896).astype(np.float32)
    gate, up = np.split(product.expected(x, norm), 2, axis=1)
    out = product.run(x, norm=norm, epilogue="gated")
    assert error(out, gate / (1 + np.exp(-gate)) * up) < 2e-4
    few = product.run(x, sm_count=5, norm=norm, epilogue="gated")
    np.testing.assert_array_equal(few, out, err_msg="on 5 SMs")


def test_outliers_cost_little(device, guarded, rng):
    product = Product(device, guarded, random_matrix(rng, "w4g128", 512, 2048))
    x = rng.normal(size=(2, 2048)).astype(np.float32)
    x[0, 77] = 1e4
    x[1, 2047] = -1e4
    assert error(product.run(x), product.expected(x)) < 2e-4


def test_zeros_and_tiny_values(device, guarded, rng):
    product = Product(device, guarded, random_matrix(rng, "w4g128", 64, 384))
    x = np.zeros((2, 384), np.float32)
    np.testing.assert_array_equal(product.run(x), np.zeros((2, 64), np.float32))
    x = (rng.normal(size=(2, 384)) * 1e-20).astype(np.float32)
    assert error(product.run(x), product.expected(x)) < 2e-4


def test_many_runs_agree(device, guarded, rng):
    product = Product(device, guarded, random_matrix(rng, "w3g128", 4096, 3584))
    x = rng.normal(size=(1, 3584)).astype(np.float32)
    first = product.run(x)
    for _ in range(20):
        np.testing.assert_array_equal(product.run(x), first)
