"""Opens a model, whatever its format."""

from __future__ import annotations

from pathlib import Path

from inference.errors import ModelFormatError, ModelNotFoundError
from inference.formats.checkpoint.checkpoint import CheckpointSource
from inference.formats.checkpoint.manifest import is_checkpoint
from inference.formats.gguf.gguf import GgufSource
from inference.formats.huggingface.huggingface import HuggingFaceSource
from inference.formats.model_source import ModelSource


def open_model(path: Path) -> ModelSource:
    """Opens a .gguf file, a checkpoint or a Hugging Face directory and checks it as a whole; weights are not read.

    A directory that holds no config.json but exactly one .gguf file opens that file.

    Raises:
        ModelNotFoundError: there is nothing at `path`, or it may not be read.
        ModelFormatError: a file is truncated, hostile or not what it claims to be.
        UnsupportedModelError: a sound model that this engine does not run.
    """
    if not path.exists():
        raise ModelNotFoundError(f"There is no model at {path}. Check the path, or list models: deskinfer models list")
    if not path.is_dir():
        return GgufSource(path)
    try:
        is_our_own = is_checkpoint(path)
        has_config, files = (path / "config.json").exists(), sorted(path.glob("*.gguf"))
    except OSError as error:
        raise ModelNotFoundError(
            f"The directory {path} cannot be read ({error.strerror}). Check its permissions."
        ) from error
    if is_our_own:
        return CheckpointSource(path)
    if has_config:
        return HuggingFaceSource(path)
    if len(files) == 1:
        return GgufSource(files[0])
    raise ModelFormatError(
        f"{path} holds no config.json and {len(files)} .gguf files, so it is not clear what to open."
        " Give the path of a .gguf file, or of a directory with config.json, safetensors and tokenizer.json."
    )
