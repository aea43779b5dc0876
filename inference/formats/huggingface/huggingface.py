"""Hugging Face model directories (config.json, safetensors, tokenizer.json) as a ModelSource."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from inference.errors import ModelFormatError, UnsupportedModelError
from inference.formats.huggingface.config import read_spec
from inference.formats.huggingface.safetensors_file import SafetensorsFile, SafetensorsTensor
from inference.formats.huggingface.tokenizer import read_tokenizer
from inference.formats.json_file import MIB, read_object
from inference.formats.model_source import WeightTensor
from inference.formats.weight_shapes import Shape, check_spec, check_weights
from inference.models.model_spec import ModelSpec
from inference.text.tokenizer_data import TokenizerData

MAX_SHARDS = 1_024

# Buffers that old checkpoints hold and that are computed here.
_COMPUTED = ".rotary_emb.inv_freq"


class HuggingFaceSource:
    """A model directory as a ModelSource."""

    def __init__(self, path: Path) -> None:
        """Opens and checks the configuration and the table of every weight file; weights are not read.

        Raises:
            ModelFormatError: a file is missing, truncated, hostile, or does not fit the configuration.
            UnsupportedModelError: an architecture or variant that this engine does not run, or pickled weights.
        """
        self.path = path
        self._config = read_object(path / "config.json")
        self.spec: ModelSpec = read_spec(self._config, f"{path.name}/config.json")
        check_spec(self.spec, f"{path.name}/config.json")
        self._files: list[SafetensorsFile] = []
        self._tensors: dict[str, tuple[SafetensorsFile, SafetensorsTensor]] = {}
        try:
            self._open_weights()
            shapes = {name: tensor.shape for name, (_, tensor) in self._tensors.items()}
            check_weights(self.spec, shapes, path.name)
        except BaseException:
            self.close()
            raise

    def tensor_names(self) -> tuple[str, ...]:
        """All tensors, file by file, in file order."""
        return tuple(self._tensors)

    def tensor_kind(self, name: str) -> tuple[str, Shape]:
        """Kind and shape of a tensor without reading it."""
        _, tensor = self._find(name)
        return tensor.kind, tensor.shape

    def tensor(self, name: str) -> WeightTensor:
        """Maps one tensor. Raises ModelFormatError where the model lacks it."""
        file, tensor = self._find(name)
        rows = 1 if len(tensor.shape) == 1 else tensor.shape[0]
        return WeightTensor(name, tensor.shape, tensor.kind, file.tensor_bytes(tensor).reshape(rows, -1))

    def tokenizer_data(self) -> TokenizerData:
        """The text of tokenizer.json, with what the files beside it say of templates and end tokens."""
        return read_tokenizer(self.path, self._config, self.spec.vocab_size)

    def close(self) -> None:
        """Lets go of the files."""
        for file in self._files:
            file.close()

    def _find(self, name: str) -> tuple[SafetensorsFile, SafetensorsTensor]:
        found = self._tensors.get(name)
        if found is None:
            raise ModelFormatError(f"{self.path} has no tensor {name!r}. Fetch the model again.")
        return found

    def _open_weights(self) -> None:
        for file_path in weight_files(self.path):
            file = SafetensorsFile(file_path)
            self._files.append(file)
            for name, tensor in file.tensors.items():
                # A tied head that is stored all the same is the embedding again.
                if name.endswith(_COMPUTED) or (self.spec.tied_head and name == "lm_head.weight"):
                    continue
                if name in self._tensors:
                    other = self._tensors[name][0].path.name
                    raise ModelFormatError(
                        f"{name!r} is in {other} and in {file_path.name} of {self.path}. Fetch the model again."
                    )
                self._tensors[name] = (file, tensor)


def weight_files(path: Path) -> list[Path]:
    """The weight files of a directory: model.safetensors, or the shards that its index names."""
    single = path / "model.safetensors"
    if single.exists():
        return [single]
    index_path = path / "model.safetensors.index.json"
    if not index_path.exists():
        _refuse_without_weights(path)
    weight_map = read_object(index_path, 16 * MIB).get("weight_map")
    names = sorted(set(weight_map.values())) if isinstance(weight_map, dict) and _are_texts(weight_map.values()) else []
    # A name with a path in it could reach any file of the machine.
    sound = all(Path(name).name == name and "\\" not in name and name.endswith(".safetensors") for name in names)
    if not sound or not 1 <= len(names) <= MAX_SHARDS:
        raise ModelFormatError(f"{index_path} names no sound list of weight files. Fetch the model again.")
    missing = [name for name in names if not (path / name).exists()]
    if missing:
        raise ModelFormatError(
            f"{path} lacks {len(missing)} of its {len(names)} weight files: {', '.join(missing[:5])}."
            " Fetch them into the directory."
        )
    return [path / name for name in names]


def _refuse_without_weights(path: Path) -> NoReturn:
    pickles = sorted(file.name for pattern in ("pytorch_model*.bin", "*.pth") for file in path.glob(pattern))
    if pickles:
        raise UnsupportedModelError(
            f"{path} holds its weights in {pickles[0]}, a pickle, which can run any code when it is opened."
            " Fetch the model's safetensors files, or convert it with save_pretrained of transformers."
        )
    raise ModelFormatError(
        f"{path} has no model.safetensors and no model.safetensors.index.json. Fetch the weights into the directory."
    )


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)
