"""A file mapped read-only: what the readers of model files have in common."""

from __future__ import annotations

from pathlib import Path

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
