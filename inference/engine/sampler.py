"""Choosing the next token from one row of logits. Plain functions; a device's sampler is checked against them.

The order of the filters is Hugging Face's: repetition penalty, temperature, top-k, top-p, min-p.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inference.errors import InferenceError, InvalidRequestError
from inference.request import SamplingParams

_NUCLEUS_GUESS = 256
"""Tokens that are sorted first: they nearly always hold the whole nucleus, and sorting a vocabulary is slow."""


def choose(
    logits: NDArray[np.float32],
    token_ids: Sequence[int],
    params: SamplingParams,
    seed: int,
    index: int,
    allowed: NDArray[np.bool_] | None = None,
) -> int:
    """The next token.

    Args:
        logits: float32 (vocab_size,).
        token_ids: prompt and answer so far, for the penalties.
        seed: the request's.
        index: how many tokens of the answer there are; with the seed it fixes the random number, whatever runs beside.
        allowed: bool (vocab_size,), tokens to choose from; None for all.

    Raises:
        InferenceError: the logits hold no number to choose by.
    """
    if params.repetition_penalty != 1.0:
        logits = penalize(logits, token_ids, params.repetition_penalty)
    if params.needs_logits:
        logits = adjust(logits, token_ids[len(token_ids) - index :], params)
    if allowed is not None:
        choices = np.flatnonzero(allowed)
        return int(choices[_choose(logits[choices], params, seed, index)])
    return _choose(logits, params, seed, index)


def _choose(logits: NDArray[np.float32], params: SamplingParams, seed: int, index: int) -> int:
    if params.temperature == 0.0:
        return greedy(logits)
    ids, probabilities = distribution(logits, params)
    cumulative = np.cumsum(probabilities)
    place = np.searchsorted(cumulative, uniform(seed, index) * cumulative[-1], side="right")
    # Rounding may put the number on the very end; the last token with a share is meant then.
    return int(ids[min(int(place), int(np.flatnonzero(probabilities)[-1]))])


def greedy(logits: NDArray[np.float32]) -> int:
    """The token of the highest logit; of equal ones the lowest id."""
    best = int(np.argmax(logits))
    if not np.isfinite(logits[best]):
        raise InferenceError(
            f"The model's output for the next token is {logits[best]}, not a number to choose by."
            " Its file may be damaged: verify the model or fetch it again."
        )
    return best


def penalize(logits: NDArray[np.float32], token_ids: Sequence[int], penalty: float) -> NDArray[np.float32]:
    """Logits in which tokens that have occurred are divided by the penalty, or multiplied where negative.

    Source: Keskar et al., CTRL (2019).
    """
    seen = np.unique(np.asarray(token_ids, dtype=np.int64))
    result = logits.copy()
    values = logits[seen]
    result[seen] = np.where(values > 0, values / penalty, values * penalty)
    return result


def adjust(logits: NDArray[np.float32], answer: Sequence[int], params: SamplingParams) -> NDArray[np.float32]:
    """Logits less the penalties for what the answer has, plus the bias.

    Raises:
        InvalidRequestError: the bias is of a token that the model does not have.
    """
    result = logits.copy()
    seen, counts = np.unique(np.asarray(answer, dtype=np.int64), return_counts=True)
    result[seen] -= params.presence_penalty + params.frequency_penalty * counts.astype(np.float32)
    for token_id, bias in params.logit_bias:
        if token_id >= len(logits):
            raise InvalidRequestError(
                f"logit_bias names the token {token_id}, but the model has tokens 0 to {len(logits) - 1}."
            )
        result[token_id] += bias
    return result


def log_probabilities(logits: NDArray[np.float32], token_id: int, count: int) -> tuple[float, list[tuple[int, float]]]:
    """Of a token, and of the `count` likeliest ones, the likeliest first; of the model alone, without any filter."""
    wide = logits.astype(np.float64)
    top = float(wide.max())
    normalizer = top + float(np.log(np.exp(wide - top).sum()))
    best = np.argpartition(-wide, min(count, len(wide) - 1))[:count]
    ordered = sorted((int(each) for each in best), key=lambda each: (-wide[each], each))
    return float(wide[token_id]) - normalizer, [(each, float(wide[each]) - normalizer) for each in ordered]


def distribution(logits: NDArray[np.float32], params: SamplingParams) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The tokens that the filters leave, in the order of their ids, and their probabilities (sum 1, float64)."""
    scores = logits.astype(np.float64) / params.temperature
    scores -= scores[greedy(logits)]
    ids = np.arange(len(scores)) if params.top_k == 0 else _top_k(scores, params.top_k)
    weights = np.exp(scores[ids])
    if params.top_p < 1.0:
        kept = _top_p(weights, params.top_p)
        ids, weights = ids[kept], weights[kept]
    if params.min_p > 0.0:
        kept = np.flatnonzero(weights >= params.min_p * weights.max())
        ids, weights = ids[kept], weights[kept]
    return ids, weights / weights.sum()


def _top_k(scores: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """Ids of the k highest scores, and of all that equal the lowest of them."""
    if k >= len(scores):
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, -k)[-k])


def _top_p(weights: NDArray[np.float64], top_p: float) -> NDArray[np.intp]:
    """Places of the fewest heaviest weights that reach the share `top_p`, ascending; of equal ones the first."""
    limit = top_p * weights.sum()
    count = min(_NUCLEUS_GUESS, len(weights))
    while True:
        # All that equal the lightest guessed one come along: which of them are kept must not depend on the guess.
        guess = _top_k(weights, count)
        order = guess[np.argsort(-weights[guess], kind="stable")]
        before = np.cumsum(weights[order]) - weights[order]
        if before[-1] + weights[order[-1]] >= limit or len(order) == len(weights):
            return np.sort(order[(before < limit) | (np.arange(len(order)) == 0)])
        count = min(16 * count, len(weights))


def uniform(seed: int, index: int) -> float:
    """A number in [0, 1) that depends on nothing but its arguments. Philox, a counter-based generator."""
    return float(np.random.Generator(np.random.Philox(key=seed % 2**64, counter=index)).random())
