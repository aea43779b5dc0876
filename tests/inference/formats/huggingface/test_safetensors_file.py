"""The safetensors container against the safetensors package, and against tables that lie."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.errors import InferenceError, ModelFormatError, UnsupportedModelError
from inference.formats.huggingface.safetensors_file import MAX_HEADER_BYTES, SafetensorsFile

LIMIT_S = 1.0


def container(table: Any, data: bytes = b"", header_bytes: int | None = None) -> bytes:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text) if header_bytes is None else header_bytes) + text + data


def entry(shape: list[Any], begin: Any, end: Any, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_what_the_safetensors_package_writes_is_read(tmp_path: Path) -> None:
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    tensors = {"b": np.arange(6, dtype=np.float16).reshape(2, 3), "a": np.ones(5, np.float32)}
    safetensors_numpy.save_file(tensors, tmp_path / "m.safetensors", metadata={"format": "pt"})
    file = SafetensorsFile(tmp_path / "m.safetensors")
    assert set(file.tensors) == {"a", "b"}
    for name, expected in tensors.items():
        tensor = file.tensors[name]
        assert tensor.shape == expected.shape
        assert file.tensor_bytes(tensor).tobytes() == expected.tobytes()
    assert (file.tensors["a"].kind, file.tensors["b"].kind) == ("f32", "f16")
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.tensor_bytes(file.tensors["a"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\0\0", "it has 2 bytes"),
        (container({}, header_bytes=1 << 63), "claims 9223372036854775808 bytes"),
        (container({}, header_bytes=3), "claims 3 bytes, but the file has 10"),
        (container(b"[" * 100_000), "no sound JSON"),
        (container(b"[]"), "no JSON object but a list"),
        (container(b'{"a": {}, "a": {}}'), "a key occurs twice"),
        (container(b"\xff\xfe"), "no sound JSON"),
        (container({"t": 3}), "'t' has no description"),
        (container({"t": entry([2], 0, 8) | {"shape": "2"}}, b"\0" * 8), "no sound shape"),
        (container({"t": entry([-2], 0, 8)}, b"\0" * 8), "no sound shape"),
        (container({"t": entry([2], -8, 0)}, b"\0" * 8), "no sound shape"),
        (container({"t": entry([2.0], 0, 8)}, b"\0" * 8), "no sound shape"),
        (container({"t": entry([True], 0, 4)}, b"\0" * 8), "no sound shape"),
        (container({"t": entry([2], 0, 8, "F31")}, b"\0" * 8), "unknown type 'F31'"),
        (container({"t": entry([3], 0, 8)}, b"\0" * 8), r"\(3,\) takes 12 bytes, but is given 8"),
        (container({"t": entry([1 << 62, 1 << 62], 0, 8)}, b"\0" * 8), "but is given 8"),
        (container({"t": entry([2], 8, 16)}, b"\0" * 8), "ends at byte 16 of the data, which ends at 8"),
        (container({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, b"\0" * 12), "'a' and 'b' overlap"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    start = time.process_time()
    with pytest.raises(ModelFormatError, match=words):
        SafetensorsFile(path)
    assert time.process_time() - start < LIMIT_S


def test_other_types_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(container({"t": entry([8], 0, 8, "F8_E4M3")}, b"\0" * 8))
    with pytest.raises(UnsupportedModelError, match="stores 't' as F8_E4M3"):
        SafetensorsFile(path)


def test_the_largest_table_is_refused_in_time(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(container(b'{"t":[' + b"0," * (MAX_HEADER_BYTES // 2 - 8) + b"0]}"))
    start = time.process_time()
    with pytest.raises(ModelFormatError, match="'t' has no description"):
        SafetensorsFile(path)
    assert time.process_time() - start < LIMIT_S


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_tables_never_do_more_than_raise_our_errors(tmp_path: Path, data: st.DataObject) -> None:
    table = {"a": entry([4, 2], 0, 32), "b": entry([3], 32, 38, "BF16")}
    content = bytearray(container(table, b"\1" * 38))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / f"{data.draw(st.integers(0, 1 << 60))}.safetensors"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        file = SafetensorsFile(path)
    except InferenceError:
        return
    for tensor in file.tensors.values():
        assert file.tensor_bytes(tensor).size == tensor.num_bytes
