"""The product of many tokens with a quantized matrix, against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.device.driver import Device
from kernels.errors import ContractError
from kernels.launch.linear import DeviceMatrix
from kernels.launch.matmul import Activations, BlockShape, Matmul
from kernels.weights.quant_format import QuantFormat, QuantizedMatrix, pack

FORMATS = [f"w{bits}g{group}{minima}" for bits in (3, 4, 8) for group in (32, 64, 128) for minima in ("", "m")]
TOLERANCE = 4e-4
"""Of the rounding to digits, for a token beside outliers that take the digits' range, on average: 1e-4 to 2.4e-4 for
random matrices of few columns; without the low digit it would be 7e-3."""
ROUNDED_TOLERANCE = 5e-6
"""Of float32 sums, against the exact product of the rounded rows."""


def random_matrix(rng: np.random.Generator, name: str, rows: int, columns: int) -> QuantizedMatrix:
    of_format = QuantFormat.parse(name)
    low, high = of_format.limits
    codes = rng.integers(low, high + 1, (rows, columns)).astype(np.int8)
    shape = (rows, -(-columns // of_format.group_size))
    scales = (rng.uniform(0.5, 2, shape) / (high * columns**0.5)).astype(np.float16)
    minima = None if of_format.symmetric else (rng.standard_normal(shape) / columns**0.5).astype(np.float16)
    return QuantizedMatrix(of_format, codes, scales, minima)


def random_rows(rng: np.random.Generator, tokens: int, columns: int) -> NDArray[np.float32]:
    """With a column of outliers and a row that is larger than the others."""
    x = rng.standard_normal((tokens, columns)).astype(np.float32)
    x[:, rng.integers(columns)] *= 300
    x[rng.integers(tokens)] *= 50
    return x


class Product:
    """A matrix on the device, and its products with rows of the host."""

    def __init__(
        self,
        device: Device,
        guarded: Callable[..., Any],
        matrix: QuantizedMatrix,
        bias: NDArray[np.float32] | None = None,
        digits: int = 2,
        shared_bytes: int = 0,
    ) -> None:
        self._guarded, self.matmul = guarded, Matmul(device, digits, shared_bytes)
        self.weights, self.bias = matrix.dequantize().astype(np.float64), bias
        rows, columns = matrix.codes.shape
        bias_pointer = 0 if bias is None else guarded(bias).pointer
        self.matrix = DeviceMatrix(guarded(pack(matrix)).pointer, rows, columns, matrix.format, bias_pointer)

    def __call__(
        self,
        x: NDArray[np.float32],
        epilogue: str = "store",
        residual: NDArray[np.float32] | None = None,
        shape: BlockShape | None = None,
    ) -> NDArray[np.float32]:
        tokens, columns = x.shape
        memory = self._guarded(Activations.nbytes_for(tokens, columns))
        activations = Activations(memory.pointer, memory.nbytes)
        self.matmul.quantize_rows(self._guarded(x).pointer, tokens, columns, activations)
        size = (tokens, self.matrix.rows // (2 if epilogue == "gated" else 1))
        out = self._guarded(size[0] * size[1] * 4) if residual is None else self._guarded(residual)
        self.matmul.matmul(
            activations, tokens, self.matrix, out.pointer, epilogue=epilogue,
            residual=0 if residual is None else out.pointer, shape=shape,
        )  # fmt: skip
        result: NDArray[np.float32] = out.download(np.float32, size)
        return result

    def check(
        self, x: NDArray[np.float32], epilogue: str = "store", residual: NDArray[np.float32] | None = None
    ) -> None:
        """The product is that of the rounded rows, and close to that of the rows."""
        got = self(x, epilogue, residual)
        errors = relative_errors(got, self.expected(rounded(x), epilogue, residual))
        assert errors.max() < ROUNDED_TOLERANCE, epilogue
        errors = relative_errors(got, self.expected(x, epilogue, residual))
        assert np.sqrt(np.mean(errors**2)) < TOLERANCE, epilogue

    def expected(
        self, x: NDArray[Any], epilogue: str = "store", residual: NDArray[np.float32] | None = None
    ) -> NDArray[np.float64]:
        product = x.astype(np.float64) @ self.weights.T
        if self.bias is not None:
            product += self.bias
        if epilogue == "gated":
            gate, up = np.split(product, 2, axis=1)
            product = gate / (1 + np.exp(-np.maximum(gate, -700))) * up
        return product if residual is None else product + residual


def rounded(x: NDArray[np.float32]) -> NDArray[np.float64]:
    """Rows as their digits give them back."""
    tokens, columns = x.shape
    blocks = np.pad(x, ((0, 0), (0, -columns % 128))).reshape(tokens, -1, 128)
    largest = np.abs(blocks).max(axis=2, keepdims=True)
    scales = largest / np.float32(32639)
    inverses = np.divide(np.float32(32639), largest, out=np.zeros_like(largest), where=largest > 0)
    values = np.rint(blocks * inverses).astype(np.float64) * scales
    return values.reshape(tokens, -1)[:, :columns]


def relative_errors(got: NDArray[Any], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each token."""
    errors: NDArray[np.float64] = np.linalg.norm(got - expected, axis=1) / np.linalg.norm(expected, axis=1)
    return errors


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("tokens", "rows", "columns"), [(58, 80, 576), (5, 333, 896)])
def test_every_format(
    device: Device,
    guarded: Callable[..., Any],
    rng: np.random.Generator,
    name: str,
    tokens: int,
    rows: int,
    columns: int,
) -> None:
    bias = rng.standard_normal(rows).astype(np.float32)
    product = Product(device, guarded, random_matrix(rng, name, rows, columns), bias)
    x = random_rows(rng, tokens, columns)
    product.check(x)


@pytest.mark.parametrize("tokens", [1, 5, 58, 63, 64, 65, 130, 512])
@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [("w4g128", 2560, 2048), ("w3g64", 1040, 4864), ("w4g128", 336, 11008), ("w8g32m", 7, 132)],
)
def test_every_number_of_tokens(
    device: Device,
    guarded: Callable[..., Any],
    rng: np.random.Generator,
    name: str,
    rows: int,
    columns: int,
    tokens: int,
) -> None:
    product = Product(device, guarded, random_matrix(rng, name, rows, columns))
    x = random_rows(rng, tokens, columns)
    product.check(x)


@pytest.mark.parametrize("name", ["w4g128", "w3g64", "w4g32m"])
@pytest.mark.parametrize("tokens", [9, 65])
@pytest.mark.parametrize("with_bias", [False, True])
def test_epilogues(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, name: str, tokens: int, with_bias: bool
) -> None:
    rows, columns = 2 * 336, 576
    bias = rng.standard_normal(rows).astype(np.float32) if with_bias else None
    product = Product(device, guarded, random_matrix(rng, name, rows, columns), bias)
    x = random_rows(rng, tokens, columns)
    residual = rng.standard_normal((tokens, rows)).astype(np.float32)
    for epilogue, added in (("store", None), ("gated", None), ("add", residual)):
        product.check(x, epilogue, added)


@pytest.mark.parametrize("name", ["w4g128", "w3g64", "w4g32", "w8g128", "w4g64m"])
@pytest.mark.parametrize("epilogue", ["store", "gated"])
def test_a_token_gets_the_same_bits_in_every_shape_and_company(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, name: str, epilogue: str
) -> None:
    product = Product(device, guarded, random_matrix(rng, name, 2 * 208, 1152))
    x = random_rows(rng, 150, 1152)
    expected = product(x, epilogue)
    shapes = product.matmul.shapes(product.matrix.format, epilogue == "gated")
    assert len(shapes) >= 2
    for shape in shapes:
        np.testing.assert_array_equal(product(x, epilogue, shape=shape), expected)
    for first, last in ((0, 1), (3, 61), (40, 105), (149, 150)):
        np.testing.assert_array_equal(product(x[first:last], epilogue), expected[first:last])
    others = random_rows(rng, 150, 1152) * 1e30
    others[77] = x[77]
    np.testing.assert_array_equal(product(others, epilogue)[77], expected[77])


@pytest.mark.parametrize("name", ["w4g128", "w3g128", "w8g32m"])
@pytest.mark.parametrize("shared_bytes", [64 << 10, 99 << 10])
def test_small_shared_memory_gives_the_same_bits(
    device: Device, guarded: Callable[..., Any], rng: np.random.Generator, name: str, shared_bytes: int
) -> None:
    matrix = random_matrix(rng, name, 336, 1920)
    x = random_rows(rng, 70, 1920)
    expected = Product(device, guarded, matrix)(x)
    product = Product(device, guarded, matrix, shared_bytes=shared_bytes)
    for shape in product.matmul.shapes(matrix.format):
        np.testing.assert_array_equal(product(x, shape=shape), expected)


def test_one_digit_is_less_exact(device: Device, guarded: Callable[..., Any], rng: np.random.Generator) -> None:
    product = Product(device, guarded, random_matrix(rng, "w4g128", 256, 1024), digits=1)
    x = rng.standard_normal((58, 1024)).astype(np.float32)
    errors = relative_errors(product(x), product.expected(x))
    assert 1e-3 < errors.max() < 2e-2


def test_what_the_epilogue_needs_is_checked(device: Device) -> None:
    matrix = DeviceMatrix(256, 48, 128, QuantFormat(4, 128))
    activations = Activations(256, Activations.nbytes_for(1, 128))
    matmul = Matmul(device)
    with pytest.raises(ContractError, match="residual"):
        matmul.matmul(activations, 1, matrix, 256, epilogue="add")
    with pytest.raises(ContractError, match="32 rows"):
        matmul.matmul(activations, 1, matrix, 256, epilogue="gated")
