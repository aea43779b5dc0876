"""The GGUF container against the gguf package, and files that lie: each is refused by name, in under a second."""

from __future__ import annotations

import contextlib
import os
import struct
import time
import uuid
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inference.errors import InferenceError, ModelFormatError, UnsupportedModelError
from inference.formats.gguf.gguf import GgufSource
from inference.formats.gguf.gguf_file import MAX_STRINGS, GgufArray, GgufFile

LIMIT_S = 1.0


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def entry(key: bytes, value_type: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", value_type) + value


def tensor(name: bytes, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def container(
    metadata: list[bytes] = [],  # noqa: B006
    tensors: list[bytes] = [],  # noqa: B006
    data: bytes = b"",
    *,
    version: int = 3,
    num_metadata: int | None = None,
    num_tensors: int | None = None,
) -> bytes:
    counts = (
        len(tensors) if num_tensors is None else num_tensors,
        len(metadata) if num_metadata is None else num_metadata,
    )
    head = b"GGUF" + struct.pack("<IQQ", version, *counts) + b"".join(metadata) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + data


def refused(path: Path, content: bytes, words: str, error: type[InferenceError] = ModelFormatError) -> None:
    path.write_bytes(content)
    start = time.process_time()
    with pytest.raises(error, match=words):
        GgufFile(path)
    assert time.process_time() - start < LIMIT_S


@pytest.mark.parametrize("version", [2, 3])
def test_metadata_and_tensors_equal_those_of_the_gguf_package(tiny: Any, tmp_path: Path, version: int) -> None:
    path = tiny.write_gguf(tmp_path / "m.gguf", "qwen2", kind="q8_0")
    content = bytearray(path.read_bytes())
    content[4:8] = struct.pack("<I", version)
    path.write_bytes(content)
    peer = gguf.GGUFReader(path)
    file = GgufFile(path)
    assert file.version == version
    assert list(file.tensors) == [item.name for item in peer.tensors]
    for item in peer.tensors:
        ours = file.tensors[item.name]
        assert ours.shape == tuple(int(size) for size in item.shape)[::-1]
        assert ours.kind == item.tensor_type.name.lower()
        assert ours.offset == item.data_offset
        assert file.tensor_bytes(ours).tobytes() == item.data.tobytes()
    for key, value in file.metadata.items():
        expected = peer.fields[key].contents()
        if isinstance(value, GgufArray):
            assert list(file.strings(key) if value.element_type == 8 else file.integers(key)) == expected
        elif isinstance(expected, str):
            assert file.string(key) == expected
        else:
            assert value == expected
    file.close()


def test_views_are_read_only_and_outlive_the_file(tiny: Any, tmp_path: Path) -> None:
    file = GgufFile(tiny.write_gguf(tmp_path / "m.gguf"))
    view = file.tensor_bytes(file.tensors["output_norm.weight"])
    expected = view.tobytes()
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    file.close()
    assert view.tobytes() == expected
    with pytest.raises(ValueError, match="closed"):
        file.tensor_bytes(file.tensors["output_norm.weight"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", r"is empty \(0 bytes\)"),
        (b"GG", "begins with b'GG'"),
        (b"PK\x03\x04" + b"\0" * 64, "begins with b'PK"),
        (b"GGUF\x03\0", "the version takes 4 bytes at byte 4, but the file ends at byte 6"),
        (container(version=4), "version is 4, but it must be 2 or 3"),
        (container(num_tensors=1 << 63), "number of tensors is 9223372036854775808, but at most 65536"),
        (container(num_metadata=(1 << 64) - 1), "number of metadata entries is 18446744073709551615"),
        (container(num_metadata=3), "the type of '' takes 4 bytes at byte 32, but the file ends at byte 32"),
        (container([text(b"k" * 2000)]), "the length of the key of metadata entry 0 is 2000, but at most 1024"),
        (container([entry(b"\xff\xfe", 4, b"\0\0\0\0")]), "the key of metadata entry 0 is not UTF-8"),
        (container([entry(b"k", 13, b"\0" * 8)]), "'k' has the unknown type 13"),
        (container([entry(b"k", 7, b"\x02")]), "'k' is a truth value of 2"),
        (container([entry(b"k", 4, b"\1\0\0\0")] * 2), "'k' occurs twice"),
        (container([entry(b"k", 8, struct.pack("<Q", 1 << 62))]), "takes 4611686018427387904 bytes at byte"),
        (container([entry(b"k", 9, struct.pack("<IQ", 4, 1 << 62))]), "the array 'k' takes 18446744073709551616 bytes"),
        (container([entry(b"k", 9, struct.pack("<IQ", 8, 1 << 62))]), "claims 4611686018427387904 strings"),
        (container([entry(b"k", 9, struct.pack("<IQ", 9, 1) * 50)]), "the array 'k' holds arrays"),
        (container([entry(b"k", 9, struct.pack("<IQ", 99, 1))]), "holds the unknown type 99"),
        (container([entry(b"k", 9, struct.pack("<IQQ", 8, 2, 1 << 63) + b"\0" * 64)]), "at string 1 of 2"),
        (container([entry(b"k", 9, struct.pack("<IQQ", 8, 1, 1 << 63) + b"\0" * 64)]), "the array 'k' ends at byte"),
        (container(tensors=[tensor(b"t", (), 0, 0)]), "'t' has 0 dimensions"),
        (container(tensors=[tensor(b"t", (1,) * 5, 0, 0)]), "'t' has 5 dimensions"),
        (container(tensors=[tensor(b"t", (0, 4), 0, 0)]), r"'t' of kind f32 has the shape \(4, 0\)"),
        (container(tensors=[tensor(b"t", (33, 4), 2, 0)]), "rows must be multiples of 32"),
        (container(tensors=[tensor(b"t", (32,), 4, 0)]), "'t' has the unknown type 4"),
        (container(tensors=[tensor(b"t", (1 << 63, 1 << 63), 0, 0)]), "ends at byte 3402823669209384634633746"),
        (container(tensors=[tensor(b"t", (8,), 0, 1 << 63)], data=b"\0" * 32), "ends at byte 92233720368547"),
        (container(tensors=[tensor(b"t", (8,), 0, 4)], data=b"\0" * 64), "4, which is no multiple of the alignment 32"),
        (container(tensors=[tensor(b"t", (8,), 0, 0)], data=b"\0" * 31), "but the file ends at byte"),
        (container(tensors=[tensor(b"t", (8,), 0, 0)] * 2, data=b"\0" * 64), "'t' occurs twice"),
        (
            container(tensors=[tensor(b"a", (16,), 0, 0), tensor(b"b", (8,), 0, 32)], data=b"\0" * 64),
            "'a' and 'b' overlap",
        ),
        (container([entry(b"general.alignment", 10, struct.pack("<Q", 1 << 40))]), "alignment is 1099511627776"),
        (container([entry(b"general.alignment", 6, struct.pack("<f", 32.0))]), "alignment is 32.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    refused(tmp_path / "m.gguf", content, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (container(version=1), "in version 1"),
        (container(version=3 << 24), "in big endian"),
        (container(tensors=[tensor(b"t", (256,), 16, 0)], data=b"\0" * 66), "stores 't' as iq2_xxs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "file",
)
def test_sound_files_of_other_kinds_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    refused(tmp_path / "m.gguf", content, words, UnsupportedModelError)


def test_a_large_file_of_empty_strings_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    count = 64_000_000
    with path.open("wb") as file:
        file.write(container([entry(b"k", 9, struct.pack("<IQ", 8, count))]))
        # Sparse: it claims half a gigabyte of strings and takes no room.
        file.truncate(count * 8 + 4096)
    start = time.process_time()
    with pytest.raises(ModelFormatError, match=f"64000000 strings, more than .* {MAX_STRINGS} in all"):
        GgufFile(path)
    assert time.process_time() - start < LIMIT_S


def test_the_most_strings_that_are_allowed_take_under_a_second(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    with path.open("wb") as file:
        file.write(container([entry(b"k", 9, struct.pack("<IQ", 8, MAX_STRINGS))])[:-8])
        file.truncate(MAX_STRINGS * 8 + 4096)
    start = time.process_time()
    file_ = GgufFile(path)
    assert time.process_time() - start < LIMIT_S
    assert len(file_.strings("k")) == MAX_STRINGS


def test_a_text_of_gigabytes_is_never_read(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    num_bytes = 4 << 30
    with path.open("wb") as file:
        file.write(container([entry(b"k", 8, struct.pack("<Q", num_bytes))]))
        file.truncate(num_bytes + 4096)
    start = time.process_time()
    file_ = GgufFile(path)
    with pytest.raises(ModelFormatError, match="'k' has 4294967296 bytes, but at most 67108864"):
        file_.string("k")
    with path.open("wb") as file:
        file.write(container([entry(b"k", 9, struct.pack("<IQQ", 8, 1, num_bytes))]))
        file.truncate(num_bytes + 4096)
    with pytest.raises(ModelFormatError, match="the array 'k' has 4294967304 bytes"):
        GgufFile(path)
    assert time.process_time() - start < LIMIT_S


def test_a_directory_and_a_pipe_are_no_models(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="not a regular file"):
        GgufFile(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFormatError, match="not a regular file"):
            GgufFile(tmp_path / "pipe")


def test_an_array_of_another_type_is_named(tiny: Any, tmp_path: Path) -> None:
    file = GgufFile(tiny.write_gguf(tmp_path / "m.gguf"))
    with pytest.raises(ModelFormatError, match="no array of integers"):
        file.integers("tokenizer.ggml.tokens")
    assert file.integers("absent") == ()
    assert file.strings("absent") == ()
    assert file.string("absent") is None


def open_whole(path: Path) -> None:
    """Opens a file and reads all that the engine would read of it."""
    source = GgufSource(path)
    try:
        source.tokenizer_data()
        for name in source.tensor_names():
            source.tensor(name).data.sum()
    finally:
        source.close()


FUZZ = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(data=st.data())
def test_truncated_files_are_refused(tiny: Any, tmp_path: Path, data: st.DataObject) -> None:
    content = _whole(tiny, tmp_path)
    # The last tensor is padded to the alignment, so that less than that may be missing.
    length = data.draw(st.integers(0, len(content) - 33))
    assert not _opens(tmp_path, content[:length])


@FUZZ
@given(data=st.data())
def test_flipped_bits_never_do_more_than_raise_our_errors(tiny: Any, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(_whole(tiny, tmp_path))
    header_bytes = 4000
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, header_bytes))
        content[position] ^= 1 << data.draw(st.integers(0, 7))
    _opens(tmp_path, bytes(content))


@FUZZ
@given(data=st.data())
def test_huge_numbers_anywhere_never_do_more_than_raise_our_errors(
    tiny: Any, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(_whole(tiny, tmp_path))
    position = data.draw(st.integers(0, 4000))
    number = data.draw(st.sampled_from([0, 1, 0xFF, (1 << 31) - 1, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1]))
    content[position : position + 8] = struct.pack("<Q", number)
    _opens(tmp_path, bytes(content))


@FUZZ
@given(content=st.binary(max_size=400))
def test_random_bytes_behind_a_header_are_refused_by_our_errors(tmp_path: Path, content: bytes) -> None:
    assert not _opens(tmp_path, b"GGUF\x03\0\0\0" + content)


def _whole(tiny: Any, tmp_path: Path) -> bytes:
    path = tmp_path / "whole.gguf"
    if not path.exists():
        tiny.write_gguf(path, extra={"rope_freqs.weight": np.ones(tiny.HEAD_DIM // 2, np.float32)})
    return path.read_bytes()


def _opens(tmp_path: Path, content: bytes) -> bool:
    """Whether the engine takes the file. Any error but ours, or more than LIMIT_S, fails the test."""
    # A name of its own: Windows keeps a file that an error's traceback still maps.
    path = tmp_path / f"{uuid.uuid4().hex}.gguf"
    path.write_bytes(content)
    start = time.process_time()
    try:
        open_whole(path)
        opened = True
    except (ModelFormatError, UnsupportedModelError):
        opened = False
    assert time.process_time() - start < LIMIT_S
    with contextlib.suppress(PermissionError):
        path.unlink()
    return opened
