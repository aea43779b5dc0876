"""The cuda backend and its runner on an emulated GPU: what is launched, where it lies, and what comes out."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inference.backends import cuda_backend
from inference.backends.cuda_backend import CudaBackend
from inference.backends.cuda_plan import WIDTHS
from inference.backends.torch_backend import TorchBackend
from inference.engine.decode_graph import DeviceRunner
from inference.engine.decoder import Decoder, LoadStopped, load_weights
from inference.engine.engine import Engine, EngineSizes
from inference.engine.memory_plan import MemoryPlan, estimate_memory
from inference.engine.runner import HostRunner
from inference.errors import BackendUnavailableError, DeviceFailedError, InferenceError, OutOfMemoryError
from inference.formats.model_source import ModelSource, WeightTensor
from inference.formats.random_model import RandomModel
from inference.models.model_spec import ModelSpec
from inference.models.rope import inv_freq
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    Grammar,
    Message,
    Priority,
    SamplingParams,
    TokenEvent,
)
from inference.text.tokenizer import Tokenizer
from kernels.errors import DeviceError
from kernels.launch.sampling import Sampler
from kernels.weights.reference import dequantize
from tests.inference.backends.emulated_gpu import EmulatedGpu, EmulatedStream

CHUNK = 48
SPEC = ModelSpec(
    "qwen2", 2, 64, 96, 4, 2, 64, vocab_size=371, max_context=512, rms_norm_eps=1e-6, rope_theta=1e4,
    qkv_bias=True, tied_head=True,
)  # fmt: skip
UNTIED = dataclasses.replace(SPEC, architecture="qwen3", tied_head=False, qkv_bias=False, qk_norm=True, num_kv_heads=1)


class NoBuilds:
    """The emulated GPU needs no compiler."""

    def __init__(self, *_: Any) -> None:
        pass

    def wait(self) -> None:
        pass

    def cancel(self) -> None:
        pass


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> list[EmulatedGpu]:
    """The GPUs that were opened."""
    opened: list[EmulatedGpu] = []

    def open_gpu(*arguments: Any) -> EmulatedGpu:
        opened.append(EmulatedGpu(*arguments))
        return opened[-1]

    monkeypatch.setattr(cuda_backend, "Device", open_gpu)
    monkeypatch.setattr(cuda_backend, "BuildPool", NoBuilds)
    return opened


class OtherKinds:
    """A random model whose matrices are float16, and one part of a stack float32."""

    def __init__(self, spec: ModelSpec) -> None:
        self._source = RandomModel("random:test:w4", spec)
        self.path, self.spec, self.close = self._source.path, spec, self._source.close
        self.tensor_names, self.tokenizer_data = self._source.tensor_names, self._source.tokenizer_data

    def tensor_kind(self, name: str) -> tuple[str, tuple[int, ...]]:
        kind, shape = self._source.tensor_kind(name)
        return (kind if len(shape) == 1 else "f32" if "v_proj" in name else "f16"), shape

    def tensor(self, name: str) -> WeightTensor:
        tensor, (kind, shape) = self._source.tensor(name), self.tensor_kind(name)
        values = dequantize(tensor.kind, tensor.data, shape).astype(np.float32 if kind == "f32" else np.float16)
        return WeightTensor(name, shape, kind, values.view(np.uint8).reshape(shape[0] if len(shape) == 2 else 1, -1))


def make_plan(source: ModelSource, backend: CudaBackend, context: int = 512) -> MemoryPlan:
    memory = backend.device_memory(0)
    tensors = {name: source.tensor_kind(name) for name in source.tensor_names()}
    return estimate_memory(
        source.spec, backend.planned_model_bytes(source.spec, tensors), backend, free_bytes=memory.free_bytes,
        reserve_bytes=memory.reserve_bytes, default_context=context, context_tokens=context,
        max_batch_tokens=CHUNK + 8,
    ).checked()  # fmt: skip


def on_gpu(source: ModelSource, pages: int = 8, graphs: bool = True) -> Engine:
    backend, spec = CudaBackend(), source.spec
    plan = make_plan(source, backend, pages * 64)
    backend.begin_load(spec, plan.weight_bytes)
    decoder = Decoder(spec, backend, load_weights(source, backend))
    backend.allocate(spec, inv_freq(spec), plan.num_pages, CHUNK + 8)
    runner = DeviceRunner(decoder, backend, graphs=graphs)
    assert backend.peak_bytes <= plan.total_bytes
    return Engine(runner, backend, Tokenizer.from_data(source.tokenizer_data()), sizes(plan.num_pages))


def on_host(source: ModelSource, pages: int = 8) -> Engine:
    backend = TorchBackend()
    decoder = Decoder(source.spec, backend, load_weights(source, backend))
    backend.allocate(source.spec, inv_freq(source.spec), pages, CHUNK + 8)
    return Engine(HostRunner(decoder), backend, Tokenizer.from_data(source.tokenizer_data()), sizes(pages))


def sizes(pages: int) -> EngineSizes:
    return EngineSizes(pages, pages * 64, prefill_chunk=CHUNK, vocab_size=SPEC.vocab_size)


def tokens_of(engine: Engine, prompts: dict[int, int], new_tokens: int = 24, **sampling: Any) -> list[list[int]]:
    """Answers to random prompts that arrive at given steps and have given lengths."""
    found = {}
    for step in range(600):
        if step in prompts:
            request = GenerationRequest((Message("user", "x"),), SamplingParams(max_new_tokens=new_tokens, **sampling))
            ids = np.random.default_rng(step).integers(0, SPEC.vocab_size, prompts[step]).tolist()
            engine.add(request, token_ids=ids)
            entry = engine._requests[request.request_id]
            found[step] = entry.sequence
        for event in engine.step():
            assert not isinstance(event, FailedEvent)
        if not engine.has_work and step > max(prompts):
            break
    assert engine.reading().pages_free == engine.reading().pages_total
    return [sequence.token_ids[sequence.prompt_tokens :] for sequence in found.values()]


@pytest.mark.parametrize("graphs", [True, False])
@pytest.mark.parametrize("spec", [SPEC, UNTIED], ids=["tied", "untied"])
def test_answers_are_the_oracles(spec: ModelSpec, graphs: bool) -> None:
    """Prompts in several chunks, beside answers and each other, over the ends of pages."""
    source = RandomModel("random:test:mixed", spec)
    prompts = {0: 60, 3: 100, 4: 1, 9: 49}
    assert tokens_of(on_gpu(source, graphs=graphs), prompts) == tokens_of(on_host(source), prompts)


def test_sampled_answers_begin_as_the_oracles_and_depend_on_the_seed_alone() -> None:
    source = RandomModel("random:test:w4", SPEC)
    sampling = {"temperature": 0.8, "top_p": 0.9, "seed": 3, "new_tokens": 20}
    engine = on_gpu(source)
    found = tokens_of(engine, {0: 20, 5: 70}, **sampling)
    assert found == [tokens_of(engine, {step: length}, **sampling)[0] for step, length in ((0, 20), (5, 70))]
    wanted = tokens_of(on_host(source), {0: 20, 5: 70}, **{**sampling, "new_tokens": 1})
    assert [answer[:1] for answer in found] == wanted
    assert found != tokens_of(engine, {0: 20, 5: 70}, **{**sampling, "seed": 4})


def test_floats_and_stacks_of_several_kinds_become_tiles() -> None:
    """8-bit tiles change weights by up to 0.4 %, so only the most of short answers is compared."""
    source = OtherKinds(UNTIED)
    found, wanted = (tokens_of(make(source), {0: 30}, new_tokens=8)[0] for make in (on_gpu, on_host))
    assert found[:2] == wanted[:2]


def test_a_decode_step_is_one_graph_of_five_kernels_a_layer(emulated: list[EmulatedGpu]) -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    (gpu,) = emulated
    captured = len(gpu.launched)
    replays = gpu.replays
    tokens_of(engine, {0: 30}, new_tokens=33)
    assert gpu.replays - replays == 32
    launched = Counter(gpu.launched[captured:])
    layers = SPEC.num_layers
    # The prompt's kernels run once, and are captured once.
    assert launched == {
        "embed": 2, "quantize_rows": 8 * layers, "matmul": 8 * layers, "rope_append": 2 * layers,
        "attention_prefill": 2 * layers, "take_rows": 2, "matvec": 2, "sample": 2,
    }  # fmt: skip
    # Each width was run once before it was captured.
    step = Counter(gpu.launched[:captured])
    assert step["attention_decode"] == 2 * len(WIDTHS) * layers
    assert step["matvec"] == 2 * len(WIDTHS) * (4 * layers + 1)


@pytest.mark.parametrize("scheme", ["w4", "mixed"])
def test_every_kernel_that_runs_was_known_before_the_weights_came(scheme: str, emulated: list[EmulatedGpu]) -> None:
    engine = on_gpu(RandomModel(f"random:test:{scheme}", SPEC))
    (gpu,) = emulated
    tokens_of(engine, {0: 1, 1: 7, 2: 33, 3: 48, 4: 100}, new_tokens=3)
    # The self-check has a matrix of its own.
    checked = CudaBackend()
    assert gpu.asked - emulated[1].asked <= set(engine._backend._variants)  # type: ignore[attr-defined]
    checked.close()


def test_a_short_prompt_is_a_graph_from_its_second_time_on(emulated: list[EmulatedGpu]) -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    (gpu,) = emulated
    first = tokens_of(engine, {0: 30}, new_tokens=1)
    launched, replays = len(gpu.launched), gpu.replays
    assert tokens_of(engine, {0: 30}, new_tokens=1) == first
    for length in (17, 32):
        wanted = tokens_of(on_gpu(RandomModel("random:test:w4", SPEC), graphs=False), {5: length}, new_tokens=3)
        assert tokens_of(engine, {5: length}, new_tokens=3) == wanted
    assert len(gpu.launched) == launched
    assert gpu.replays - replays == 3 + 2 * 2
    assert tokens_of(engine, {0: 33}, new_tokens=1)
    assert len(gpu.launched) > launched, "another length"


def test_a_prompt_that_finds_no_memory_for_a_graph_is_answered_without(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    wanted = tokens_of(on_gpu(RandomModel("random:test:w4", SPEC)), {0: 20, 4: 25})

    def capture(_: EmulatedStream) -> Any:
        raise DeviceError("out of memory", 2)

    monkeypatch.setattr(EmulatedStream, "capture", capture)
    assert tokens_of(engine, {0: 20, 4: 25}) == wanted
    assert tokens_of(engine, {0: 20, 4: 25}) == wanted


class SlowGpu:
    """Stands in for `time`; a step takes 20 ms from when the host has the tokens of the one before."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def read(self, tokens: list[int]) -> list[int]:
        self.now += 0.02 - (self.slept[-1] if self.slept else 0.0)
        return tokens


def slow_engine(monkeypatch: pytest.MonkeyPatch, tokens_are_there: bool) -> tuple[SlowGpu, Engine]:
    """An engine on a slow GPU, whose tokens are there, or not, when they are asked for."""
    slow, read = SlowGpu(), Sampler.read
    monkeypatch.setattr("inference.engine.decode_graph.time", slow)
    monkeypatch.setattr(Sampler, "is_ready", lambda *_: tokens_are_there)
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    monkeypatch.setattr(Sampler, "read", lambda sampler, step: slow.read(read(sampler, step)))
    return slow, engine


def test_a_slow_gpu_is_slept_for_but_not_for_the_pause_before_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, engine = slow_engine(monkeypatch, tokens_are_there=False)
    for new_tokens, sleeps in ((6, 3), (2, 0), (3, 0)):
        slow.now += 0.09
        slow.slept.clear()
        tokens_of(engine, {0: 20}, new_tokens=new_tokens)
        # The prompt gives the first token; the second step began behind it; the third is the first of known length.
        assert slow.slept == pytest.approx([0.014] * sleeps)


def test_the_next_step_can_wait_for_half_of_what_the_last_one_took(monkeypatch: pytest.MonkeyPatch) -> None:
    slow, engine = slow_engine(monkeypatch, tokens_are_there=True)
    request = GenerationRequest((Message("user", "x"),), SamplingParams(max_new_tokens=9), Priority.API)
    engine.add(request, token_ids=list(range(20)))
    spare = []
    for _ in range(4):
        engine.step()
        spare.append(engine.spare_s)
    # Nothing is under way behind the prompt, and how long the step behind that takes is not known yet.
    assert spare == pytest.approx([0.0, 0.0, 0.01, 0.01])
    slow.now += 0.004
    assert engine.spare_s == pytest.approx(0.006)
    slow.now += 1.0
    assert engine.spare_s == 0.0


def test_an_answer_does_not_depend_on_its_neighbours() -> None:
    source = RandomModel("random:test:w4", SPEC)
    engine = on_gpu(source, pages=8)
    alone = [tokens_of(engine, {step: length})[0] for step, length in ((0, 30), (4, 65), (7, 3))]
    assert tokens_of(engine, {0: 30, 4: 65, 7: 3}) == alone


def test_when_pages_run_out_all_are_answered() -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC), pages=3)
    found = tokens_of(engine, {0: 60, 1: 50, 2: 40, 3: 30}, new_tokens=70)
    assert [len(answer) for answer in found] == [70] * 4


def test_a_step_given_up_in_a_prompt_is_repeated() -> None:
    source = RandomModel("random:test:w4", SPEC)
    engine = on_gpu(source)
    wanted = tokens_of(engine, {0: 20, 6: 90})
    answers = iter([False, True] * 40 + [False] * 10_000)
    step = engine.step
    engine.step = lambda: step(lambda: next(answers))  # type: ignore[method-assign]
    assert tokens_of(engine, {0: 20, 6: 90}) == wanted


def test_logits_without_a_number_fail_the_request_and_the_next_one_is_answered() -> None:
    source = RandomModel("random:test:w4", SPEC)
    engine = on_gpu(source)
    wanted = tokens_of(engine, {0: 20})
    runner = engine._runner
    assert isinstance(runner, DeviceRunner)
    norm = runner._decoder._weights.norm
    gpu = runner._backend.gpu
    kept = gpu.view(norm, np.float32, SPEC.hidden_size).copy()  # type: ignore[attr-defined]
    gpu.view(norm, np.float32, SPEC.hidden_size)[:] = np.nan  # type: ignore[attr-defined]
    request = GenerationRequest((Message("user", "x"),), SamplingParams(max_new_tokens=5))
    engine.add(request, token_ids=[1, 2, 3])
    with pytest.raises(InferenceError, match="not a number to choose"):
        engine.step()
    assert [type(event) for event in engine.fail_step(InferenceError("so"))] == [FailedEvent]
    gpu.view(norm, np.float32, SPEC.hidden_size)[:] = kept  # type: ignore[attr-defined]
    assert tokens_of(engine, {0: 20}) == wanted


def test_a_failure_of_the_gpu_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))

    def broken(*_: Any) -> None:
        raise DeviceError("a kernel read outside its memory", 700)

    monkeypatch.setattr(EmulatedGpu, "run_embed", broken)
    requests = [GenerationRequest((Message("user", "x"),), SamplingParams(max_new_tokens=5)) for _ in range(2)]
    for request in requests:
        engine.add(request, token_ids=[1, 2, 3])
    with pytest.raises(DeviceFailedError, match="The GPU failed: a kernel read outside its memory") as caught:
        engine.step()
    assert len(engine.fail_all(caught.value)) == 2
    assert not engine.has_work


def test_a_cancelled_answer_leaves_nothing_behind() -> None:
    source = RandomModel("random:test:w4", SPEC)
    engine = on_gpu(source)
    wanted = tokens_of(engine, {0: 20})
    for steps in range(1, 6):
        request = GenerationRequest((Message("user", "x"),), SamplingParams(max_new_tokens=50))
        engine.add(request, token_ids=list(range(10)))
        for _ in range(steps):
            engine.step()
        done = engine.cancel(request.request_id)
        assert isinstance(done, DoneEvent)
        assert engine.reading().pages_free == 8
        assert tokens_of(engine, {0: 20}) == wanted


def test_an_untied_embedding_takes_no_memory_of_the_gpu() -> None:
    backend = CudaBackend()
    tied, untied = (
        backend.planned_model_bytes(spec, {name: source.tensor_kind(name) for name in source.tensor_names()})
        for spec in (SPEC, dataclasses.replace(SPEC, tied_head=False))
        for source in (RandomModel("random:test:w4", spec),)
    )
    assert tied == untied


def test_what_does_not_fit_is_refused_before_anything_is_allocated(emulated: list[EmulatedGpu]) -> None:
    source = RandomModel("random:test:w4", SPEC)
    needed = make_plan(source, CudaBackend(), 512).total_bytes
    fitting, short = CudaBackend(vram_bytes=needed), CudaBackend(vram_bytes=needed - 1)
    assert make_plan(source, fitting, 512).total_bytes == needed
    peak = emulated[-1].peak_bytes
    with pytest.raises(OutOfMemoryError, match="on the GPU"):
        make_plan(source, short, 512)
    assert emulated[-1].peak_bytes == peak
    assert short.device_memory(5).free_bytes == needed - 1, "the cap holds whatever a resident model gives back"


def test_a_shape_that_the_kernels_do_not_take_is_refused() -> None:
    backend = CudaBackend()
    for odd, told in (
        (dataclasses.replace(SPEC, intermediate_size=104), "intermediate size is 104"),
        (dataclasses.replace(SPEC, head_dim=72), "heads are 72 wide"),
    ):
        with pytest.raises(BackendUnavailableError, match=told):
            backend.planned_model_bytes(odd, {})


def test_a_stopped_load_gives_everything_back(emulated: list[EmulatedGpu]) -> None:
    source, backend = RandomModel("random:test:w4", SPEC), CudaBackend()
    backend.begin_load(SPEC, make_plan(source, backend).weight_bytes)
    answers = iter([False] * 5 + [True])
    with pytest.raises(LoadStopped):
        load_weights(source, backend, None, lambda: next(answers))
    backend.close()
    assert emulated[0].closed


@pytest.mark.parametrize("failure", ["no driver", "wrong"])
def test_a_gpu_that_does_not_work_is_said_so(
    failure: str, monkeypatch: pytest.MonkeyPatch, emulated: list[EmulatedGpu]
) -> None:
    def no_driver(*_: Any) -> EmulatedGpu:
        raise DeviceError("no NVIDIA driver was found")

    def wrong(gpu: EmulatedGpu, a: Any, *_: Any) -> None:
        gpu.view(a.out, np.float32, (a.tokens, a.rows))[:] = 1.0

    if failure == "no driver":
        monkeypatch.setattr(cuda_backend, "Device", no_driver)
        told = "no NVIDIA driver was found"
    else:
        monkeypatch.setattr(EmulatedGpu, "run_matvec", wrong)
        monkeypatch.setattr(cuda_backend.cuda_self_check, "_PASSED", set())
        told = "matrix-vector kernel on emulated is off by"
    with pytest.raises(BackendUnavailableError, match=told):
        CudaBackend()
    assert all(gpu.closed for gpu in emulated)


def test_weights_come_before_allocate_only() -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    backend: Callable[..., Any] = engine._backend.vector  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="before begin_load, or after allocate"):
        backend(RandomModel("random:test:w4", SPEC).tensor("model.norm.weight"))
    engine.close()


def grammar_texts(engine: Engine, grammars: dict[str, Grammar | None], seed: int | None = None) -> dict[str, str]:
    """Answers to chats that run together, by their messages."""
    texts = dict.fromkeys(grammars, "")
    ids = {}
    for message, grammar in grammars.items():
        params = SamplingParams(max_new_tokens=30, temperature=0.0 if seed is None else 0.9, seed=seed)
        request = GenerationRequest((Message("user", message),), params, grammar=grammar)
        ids[request.request_id] = message
        engine.add(request)
    while engine.has_work:
        for event in engine.step():
            assert not isinstance(event, FailedEvent)
            if isinstance(event, TokenEvent):
                texts[ids[event.request_id]] += event.text
    return texts


def test_answers_with_a_grammar_are_chosen_on_the_host_and_harm_nobody() -> None:
    source = RandomModel("random:test:w4", SPEC)
    digits, words = Grammar("regex", "[0-9]{4,9}"), Grammar("regex", "[a-f]{3}--------------------[x-z]{2}")
    mixed = {"one": None, "two": digits, "a longer prompt, " * 6: words, "three": None}
    engine = on_gpu(source)
    alone = {message: grammar_texts(engine, {message: grammar})[message] for message, grammar in mixed.items()}
    assert grammar_texts(engine, mixed) == alone
    assert re.fullmatch(digits.text, alone["two"])
    assert re.fullmatch(words.text, alone["a longer prompt, " * 6])
    assert alone == grammar_texts(on_host(source), mixed)
    together = grammar_texts(engine, mixed, seed=5)
    assert together["two"] == grammar_texts(engine, {"two": digits}, seed=5)["two"]


def test_only_steps_with_a_grammar_wait_for_the_host() -> None:
    engine = on_gpu(RandomModel("random:test:w4", SPEC))
    launches: list[bool] = []
    launch = engine._runner.launch

    def watched(rows: Any, ahead: bool, should_stop: Any = None) -> Any:
        launches.append(ahead)
        return launch(rows, ahead, should_stop)

    engine._runner.launch = watched  # type: ignore[method-assign]
    grammar_texts(engine, {"free": None})
    assert sum(launches) >= 28
    launches.clear()
    grammar_texts(engine, {"held": Grammar("regex", "[a-z]{30}")})
    assert not any(launches)
