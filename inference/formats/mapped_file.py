"""A file mapped read-only: what the readers of model files have in common."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.errors import ModelFormatError, ModelNotFoundError


def map_file(path: Path) -> NDArray[np.uint8]:
    """The bytes of a file as a read-only uint8 array (size,). Nothing is read yet: the system pages in what is touched.

    The mapping lives as long as the array or any view of it. On Windows the file cannot be deleted or replaced before.

    Raises:
        ModelNotFoundError: there is no file, or it cannot be opened.
        ModelFormatError: not a regular file, or empty.
    """
    try:
        if not path.exists():
            raise ModelNotFoundError(f"There is no file {path}. Check the path, or list models: deskinfer models list")
        # A pipe or a device would block or never end.
        if not path.is_file():
            raise ModelFormatError(f"{path} is not a regular file, so it cannot be a model. Give a file's path.")
        if path.stat().st_size == 0:
            raise ModelFormatError(f"{path} is empty (0 bytes). Fetch the file again.")
        mapped = np.memmap(path, dtype=np.uint8, mode="r")
    except OSError as error:
        reason = error.strerror or error
        raise ModelNotFoundError(f"{path} cannot be opened: {reason}. Check its permissions.") from error
    # As a plain ndarray: slicing a memmap subclass costs Python code at every view.
    return mapped.view(np.ndarray)


def drop_file_pages(array: NDArray[np.uint8]) -> None:
    """Takes an array's pages out of this process where it is a view of a mapped file; reading maps them again.

    Without it a model would count twice while it loads: once in the file's pages, once packed.
    """
    whole: Any = array
    while whole is not None and not isinstance(whole, np.memmap):
        whole = getattr(whole, "base", None)
    if not isinstance(whole, np.memmap) or whole.filename is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapping: Any = whole.base
    if not isinstance(mapping, mmap.mmap):
        return
    start = array.ctypes.data - whole.ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        mapping.madvise(mmap.MADV_DONTNEED, first, length)
