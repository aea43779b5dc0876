"""Hugging Face's transformers as a peer: a program that measures it and prints JSON lines (see app.bench.peers).

    python -m app.bench.transformers_peer DIR [--nf4] [--device cuda] [--prompt 58] [--depth 0] [--decode 64] [--chat]

DIR holds a checkpoint, or only a config.json: then the weights are random. Decoding is a plain loop over the model with
its cache, the most probable token read on the host each time, which is faster than `generate`.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any

from app.bench.figures import DECODE_TOK_S, NEW_TOKENS, PREFILL_TOK_S, PROMPT_TOKENS, TTFT_MS, WALL_MS
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan, chat_messages


class _Skip(Exception):
    """Why this peer cannot be measured."""


def say(**entry: object) -> None:
    """One JSON line."""
    sys.stdout.write(json.dumps(entry) + "\n")
    sys.stdout.flush()


def library(name: str) -> Any:
    """A library by name: nothing of ours depends on it, as the import contracts demand. Raises _Skip without it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _Skip(f"{name} cannot be imported ({error})") from error


class TransformersPeer:
    """A model of the library on one device."""

    def __init__(self, directory: Path, device: str, nf4: bool) -> None:
        self.torch, self.transformers = library("torch"), library("transformers")
        if device == "cuda" and not self.torch.cuda.is_available():
            raise _Skip("torch sees no GPU")
        if nf4 and device != "cuda":
            raise _Skip("NF4 is measured on a GPU only")
        self.device = device
        self.model = self._model(directory, nf4)
        # Renamed in version 5.
        parameters = inspect.signature(self.model.forward).parameters
        self.cache_name = "cache" if "cache" in parameters else "past_key_values"
        has_text = any((directory / name).exists() for name in ("tokenizer.json", "tokenizer_config.json"))
        self.tokenizer = self.transformers.AutoTokenizer.from_pretrained(directory) if has_text else None
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("transformers", "torch"))
        say(note=f"{versions}, {'NF4' if nf4 else self.model.dtype}, {device}")

    def _model(self, directory: Path, nf4: bool) -> Any:
        dtype = self.torch.bfloat16
        auto = self.transformers.AutoModelForCausalLM
        if nf4:
            library("bitsandbytes")
        if any(directory.glob("*.safetensors")):
            more: dict[str, object] = {"device_map": self.device} if nf4 else {}
            if nf4:
                more["quantization_config"] = self.transformers.BitsAndBytesConfig(
                    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
                )
            model = auto.from_pretrained(directory, dtype=dtype, **more)
        else:
            config = self.transformers.AutoConfig.from_pretrained(directory)
            with self.torch.device(self.device):
                model = auto.from_config(config, dtype=dtype)
            if nf4:
                _to_nf4(self.torch, library("bitsandbytes"), model)
        return model.to(self.device).eval()

    def run(self, plan: Plan, case: Case, number: int) -> dict[str, float]:
        """One case once; see app.bench.figures for the names."""
        torch = self.torch
        new_tokens = plan.new_tokens_of(case)
        start = time.perf_counter()
        ids = self._ids(plan, case, number)
        with torch.inference_mode():
            tokens = torch.tensor([ids], device=self.device)
            cache = {self.cache_name: self.transformers.DynamicCache(config=self.model.config)}
            out = self.model(tokens, use_cache=True, logits_to_keep=1, **cache)
            token = out.logits[:, -1:].argmax(-1)
            token.item()
            first = time.perf_counter()
            for _ in range(new_tokens - 1):
                out = self.model(token, use_cache=True, **cache)
                token = out.logits[:, -1:].argmax(-1)
                token.item()
        end = time.perf_counter()
        found: dict[str, float] = {PROMPT_TOKENS: len(ids), NEW_TOKENS: new_tokens}
        if case.what != DECODE:
            found |= {TTFT_MS: 1000.0 * (first - start), PREFILL_TOK_S: len(ids) / (first - start)}
        if case.what != PREFILL:
            found[DECODE_TOK_S] = (new_tokens - 1) / (end - first)
        if case.what == CHAT:
            found[WALL_MS] = 1000.0 * (end - start)
        return found

    def _ids(self, plan: Plan, case: Case, number: int) -> list[int]:
        if case.what == CHAT and self.tokenizer is not None:
            system, user = chat_messages(case.n, number)
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)[
                "input_ids"
            ]
            return [int(i) for i in ids]
        return plan.ids_of(case, number)


def _to_nf4(torch: Any, bitsandbytes: Any, model: Any) -> None:
    """Quantizes the linear layers of a model that has random weights; the head stays, as the library does it."""
    for name, module in list(model.named_modules()):
        for key, linear in list(module.named_children()):
            if not isinstance(linear, torch.nn.Linear) or "lm_head" in (name, key):
                continue
            four = bitsandbytes.nn.Linear4bit(
                linear.in_features,
                linear.out_features,
                linear.bias is not None,
                compute_dtype=torch.bfloat16,
                quant_type="nf4",
                device="meta",
            )
            four.weight = bitsandbytes.nn.Params4bit(linear.weight.data, requires_grad=False, quant_type="nf4")
            four.bias = linear.bias
            # Quantizes on its way to the device.
            setattr(module, key, four.to(linear.weight.device))


def main(arguments: list[str] | None = None) -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="python -m app.bench.transformers_peer")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--nf4", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--prompt", default="")
    parser.add_argument("--depth", default="")
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--chat", action="store_true")
    options = parser.parse_args(arguments)
    prompts, depths = (tuple(int(n) for n in text.split(",") if n) for text in (options.prompt, options.depth))
    plan = Plan(prompts, depths, options.decode, options.repeat, options.chat)
    try:
        peer = TransformersPeer(options.directory, options.device, options.nf4)
        for number in range(plan.repeats + 1):
            for case in plan.cases:
                measured = peer.run(plan, case, number)
                if number > 0:
                    say(what=case.what, n=case.n, **measured)
        if options.device == "cuda":
            say(peak_bytes=peer.torch.cuda.max_memory_reserved())
    except _Skip as reason:
        say(skip=str(reason))


if __name__ == "__main__":
    main()
