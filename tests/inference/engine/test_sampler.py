"""The sampler against float64 definitions, against transformers' processors, and against its own distribution."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inference.engine.sampler import adjust, choose, distribution, greedy, log_probabilities, penalize, uniform
from inference.errors import InferenceError, InvalidRequestError
from inference.request import LEAST_TEMPERATURE, SamplingParams


def random_logits(seed: int, size: int = 400, spread: float = 3.0) -> NDArray[np.float32]:
    return (np.random.default_rng(seed).standard_normal(size) * spread).astype(np.float32)


def dense(logits: NDArray[np.float32], params: SamplingParams) -> NDArray[np.float64]:
    """The sampler's distribution over the whole vocabulary."""
    ids, probabilities = distribution(logits, params)
    assert np.all(np.diff(ids) > 0)
    result = np.zeros(len(logits))
    result[ids] = probabilities
    return result


def by_definition(logits: NDArray[np.float32], params: SamplingParams) -> NDArray[np.float64]:
    """Every filter as a loop over the sorted vocabulary."""
    probabilities = np.exp(logits.astype(np.float64) / params.temperature)
    probabilities /= probabilities.sum()
    order = sorted(range(len(logits)), key=lambda i: (-probabilities[i], i))
    if params.top_k:
        order = order[: params.top_k]
    total, kept, share = sum(probabilities[i] for i in order), [], 0.0
    for i in order:
        if kept and share >= params.top_p:
            break
        kept.append(i)
        share += probabilities[i] / total
    kept = [i for i in kept if probabilities[i] >= params.min_p * probabilities[order[0]]]
    result = np.zeros(len(logits))
    result[kept] = probabilities[kept] / probabilities[kept].sum()
    return result


PARAMS = [
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.3),
    SamplingParams(temperature=2.5, top_k=5),
    SamplingParams(temperature=1.0, top_k=1000),
    SamplingParams(temperature=1.0, top_p=0.9),
    SamplingParams(temperature=1.0, top_p=1e-9),
    SamplingParams(temperature=5.0, top_p=0.999),
    SamplingParams(temperature=1.0, min_p=0.1),
    SamplingParams(temperature=1.0, min_p=1.0),
    SamplingParams(temperature=0.7, top_k=40, top_p=0.95, min_p=0.05),
]


@pytest.mark.parametrize("params", PARAMS, ids=repr)
@pytest.mark.parametrize("size", [3, 400, 5000])
def test_distribution_follows_its_definition(params: SamplingParams, size: int) -> None:
    for seed in range(3):
        logits = random_logits(seed, size)
        np.testing.assert_allclose(dense(logits, params), by_definition(logits, params), atol=1e-12)


@pytest.mark.parametrize("params", PARAMS, ids=repr)
def test_distribution_equals_transformers(params: SamplingParams) -> None:
    history = [3, 3, 17, 250]
    params = dataclasses.replace(params, repetition_penalty=1.3)
    processors = [
        transformers.RepetitionPenaltyLogitsProcessor(params.repetition_penalty),
        transformers.TemperatureLogitsWarper(params.temperature),
    ]
    if params.top_k:
        processors.append(transformers.TopKLogitsWarper(params.top_k))
    if params.top_p < 1.0:
        processors.append(transformers.TopPLogitsWarper(params.top_p))
    if params.min_p:
        processors.append(transformers.MinPLogitsWarper(params.min_p))
    for seed in range(5):
        logits = random_logits(seed)
        scores = torch.from_numpy(logits)[None]
        for processor in processors:
            scores = processor(torch.tensor([history]), scores)
        wanted = torch.softmax(scores.double(), dim=-1)[0].numpy()
        found = dense(penalize(logits, history, params.repetition_penalty), params)
        np.testing.assert_array_equal(found > 0, wanted > 0)
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_greedy_takes_the_lowest_of_equal_tokens() -> None:
    logits = np.array([0.5, 2.0, -1.0, 2.0, 2.0], dtype=np.float32)
    assert greedy(logits) == 1
    assert choose(logits, [], SamplingParams(), seed=3, index=0) == 1


def test_equal_tokens_at_the_edge_of_the_nucleus_are_taken_from_the_lowest() -> None:
    logits = np.zeros(1000, dtype=np.float32)
    ids, probabilities = distribution(logits, SamplingParams(temperature=1.0, top_p=0.3005))
    assert ids.tolist() == list(range(301))
    assert probabilities == pytest.approx(np.full(301, 1 / 301))


def test_penalty_divides_what_is_positive_and_multiplies_what_is_not() -> None:
    logits = np.array([2.0, -2.0, 4.0, 0.0, 1.0], dtype=np.float32)
    found = penalize(logits, [0, 1, 1, 3], 2.0)
    assert found.tolist() == [1.0, -4.0, 4.0, 0.0, 1.0]
    assert logits.tolist() == [2.0, -2.0, 4.0, 0.0, 1.0], "the step's logits are not changed"
    assert choose(logits, [2], SamplingParams(repetition_penalty=3.0), seed=0, index=0) == 0


def test_tokens_that_cannot_win_are_never_chosen() -> None:
    logits = np.full(50, -np.inf, dtype=np.float32)
    logits[[7, 30]] = 1.0
    for params in (SamplingParams(temperature=1.0), SamplingParams(temperature=9.0, top_p=0.99)):
        assert {choose(logits, [], params, seed, 0) for seed in range(40)} == {7, 30}


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_no_numbers_are_an_error(bad: float) -> None:
    logits = random_logits(0)
    logits[5] = bad
    for params in (SamplingParams(), SamplingParams(temperature=1.0, top_k=3)):
        with pytest.raises(InferenceError, match="not a number"):
            choose(logits, [], params, 0, 0)


@pytest.mark.parametrize(
    "params", [SamplingParams(temperature=1.0), SamplingParams(temperature=1.4, top_k=9, min_p=0.01)], ids=repr
)
def test_choices_are_distributed_as_stated(params: SamplingParams) -> None:
    """Chi-square over 20000 draws; the limit is exceeded by one of a million fair samplers (Wilson and Hilferty)."""
    logits = random_logits(1, size=24, spread=1.0)
    expected = dense(logits, params) * 20_000
    counts = np.bincount([choose(logits, [], params, seed=11, index=i) for i in range(20_000)], minlength=24)
    assert counts[expected == 0].sum() == 0
    kept = expected > 0
    chi_square = float(np.sum((counts[kept] - expected[kept]) ** 2 / expected[kept]))
    freedom = int(kept.sum()) - 1
    limit = freedom * (1 - 2 / (9 * freedom) + 4.75 * (2 / (9 * freedom)) ** 0.5) ** 3
    assert chi_square < limit


def test_random_numbers_depend_on_seed_and_index_alone() -> None:
    numbers = [uniform(seed, index) for seed in (0, 1, 2**63, -1) for index in range(500)]
    assert numbers == [uniform(seed, index) for seed in (0, 1, 2**63, -1) for index in range(500)]
    assert len(set(numbers)) == len(numbers)
    assert all(0.0 <= number < 1.0 for number in numbers)
    assert np.mean(numbers) == pytest.approx(0.5, abs=0.03)
    by_seed = np.array(numbers).reshape(4, 500)
    assert np.abs(np.corrcoef(by_seed) - np.eye(4)).max() < 0.2


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.floats(1e-3, 10.0),
    top_k=st.integers(0, 50),
    top_p=st.floats(1e-6, 1.0),
    min_p=st.floats(0.0, 1.0),
)
def test_the_best_token_is_always_possible(
    seed: int, temperature: float, top_k: int, top_p: float, min_p: float
) -> None:
    logits = random_logits(seed, size=60, spread=10.0)
    params = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    ids, probabilities = distribution(logits, params)
    assert greedy(logits) in ids
    assert probabilities.sum() == pytest.approx(1.0)
    assert choose(logits, [], params, seed, 0) in ids


def test_only_allowed_tokens_are_chosen_by_the_same_rules() -> None:
    rng = np.random.default_rng(3)
    for seed in range(40):
        logits = rng.standard_normal(500).astype(np.float32)
        allowed = rng.random(500) < 0.1
        params = SamplingParams(
            temperature=0.0 if seed % 4 == 0 else 1.2, top_k=seed % 3 * 5, top_p=0.9, repetition_penalty=1.3
        )
        seen = rng.integers(0, 500, 30).tolist()
        masked = np.where(allowed, logits, -np.inf).astype(np.float32)
        token = choose(logits, seen, params, seed, 7, allowed)
        assert allowed[token]
        assert token == choose(masked, seen, params, seed, 7)
        everything = np.ones(500, np.bool_)
        assert choose(logits, seen, params, seed, 7, everything) == choose(logits, seen, params, seed, 7)


def test_penalties_and_bias_by_their_definition() -> None:
    logits = random_logits(3, 50)
    params = SamplingParams(presence_penalty=0.5, frequency_penalty=-0.25, logit_bias=((7, 100.0), (8, -3.0)))
    prompt, answer = [1, 2, 3], [4, 5, 4, 4]
    wanted = logits.copy()
    wanted[4] -= 0.5 - 0.25 * 3
    wanted[5] -= 0.5 - 0.25
    wanted[7] += 100.0
    wanted[8] -= 3.0
    np.testing.assert_allclose(adjust(logits, answer, params), wanted, rtol=1e-6)
    assert choose(logits, prompt + answer, params, seed=0, index=len(answer)) == 7
    unbiased = dataclasses.replace(params, logit_bias=())
    wanted[7], wanted[8] = logits[7], logits[8]
    assert choose(logits, prompt + answer, unbiased, seed=0, index=len(answer)) == int(wanted.argmax())
    # The prompt's tokens count for nothing: where the answer is empty, so are the penalties.
    heavy = SamplingParams(presence_penalty=2.0, frequency_penalty=2.0)
    best = int(logits.argmax())
    assert choose(logits, [best] * 9, heavy, seed=0, index=0) == best


def test_a_bias_of_a_token_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"the token 50, but the model has tokens 0 to 49"):
        choose(random_logits(0, 50), [], SamplingParams(logit_bias=((50, 1.0),)), seed=0, index=0)


@pytest.mark.parametrize("count", [0, 1, 5, 20])
def test_log_probabilities_are_those_of_the_whole_vocabulary(count: int) -> None:
    logits = random_logits(count, 30)
    wanted = np.log(np.exp(logits.astype(np.float64)) / np.exp(logits.astype(np.float64)).sum())
    own, top = log_probabilities(logits, 3, count)
    assert own == pytest.approx(wanted[3])
    order = np.argsort(-wanted)[:count]
    assert [token for token, _ in top] == order.tolist()
    np.testing.assert_allclose([value for _, value in top], wanted[order])


@pytest.mark.parametrize(
    "change",
    [
        {"presence_penalty": 2.1},
        {"frequency_penalty": -2.1},
        {"logit_bias": ((1, 101.0),)},
        {"logit_bias": ((-1, 1.0),)},
        {"top_logprobs": 21},
        {"top_logprobs": -1},
    ],
    ids=repr,
)
def test_parameters_beyond_their_limits_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match=next(iter(change))):
        SamplingParams(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ({"temperature": 1e-320}, "temperature is 1e-320, but it must be 0 or from 0.00001 to 10"),
        ({"temperature": -1.0}, "0 or from 0.00001 to 10"),
        ({"temperature": float("nan")}, "0 or from 0.00001 to 10"),
        ({"repetition_penalty": 1e-30}, "repetition_penalty is 1e-30, but it must be between 0.01 and 10"),
        ({"repetition_penalty": float("inf")}, "between 0.01 and 10"),
    ],
)
def test_numbers_that_would_overflow_are_refused(values: dict[str, float], limit: str) -> None:
    with pytest.raises(InvalidRequestError, match=re.escape(limit)):
        SamplingParams(**values)  # type: ignore[arg-type]


def test_the_least_numbers_still_choose_the_most_probable_token() -> None:
    logits = np.array([1.0, 3.0, 2.0, -5.0], np.float32)
    least = SamplingParams(temperature=LEAST_TEMPERATURE, repetition_penalty=0.01)
    assert choose(logits, [], least, seed=1, index=0) == 1
    assert choose(logits, [2], least, seed=1, index=0) == 2  # a hundred times as probable as it was
