"""KV pages as a state machine: none is leaked, written by two, or handed out while somebody holds it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from inference.backends.backend import PAGE_SIZE
from inference.engine.kv_cache import KvCache, PageTable, pages_for


def tokens(count: int, start: int = 0) -> list[int]:
    return list(range(start, start + count))


def filled(cache: KvCache, token_ids: list[int]) -> PageTable:
    """A table whose tokens are all computed."""
    table = cache.open(token_ids)
    assert cache.grow(table, len(token_ids))
    cache.commit(table, token_ids, len(token_ids))
    return table


def test_pages_are_counted_and_given_back() -> None:
    cache = KvCache(4)
    table = cache.open(tokens(3))
    assert table.num_cached == 0
    assert cache.grow(table, PAGE_SIZE + 1)
    assert len(table.pages) == 2
    assert table.capacity == 2 * PAGE_SIZE
    assert cache.pages_free == 2
    assert cache.grow(table, 5), "what is there already needs nothing"
    assert not cache.grow(table, 5 * PAGE_SIZE)
    assert len(table.pages) == 2, "all or nothing"
    cache.close(table)
    assert cache.pages_free == cache.pages_total == 4
    assert table.pages == []


@pytest.mark.parametrize(
    ("length", "shared"), [(PAGE_SIZE, 0), (PAGE_SIZE + 1, 1), (2 * PAGE_SIZE, 1), (2 * PAGE_SIZE + 1, 2)]
)
def test_full_pages_of_an_equal_prefix_are_shared_but_never_the_last_token(length: int, shared: int) -> None:
    cache = KvCache(8)
    first = filled(cache, tokens(2 * PAGE_SIZE + 5))
    second = cache.open(tokens(length))
    assert second.pages == first.pages[:shared]
    assert second.num_cached == shared * PAGE_SIZE


def test_a_page_is_shared_only_behind_the_same_pages() -> None:
    cache = KvCache(8)
    filled(cache, tokens(2 * PAGE_SIZE + 1))
    other_start = [999, *tokens(2 * PAGE_SIZE + 1)[1:]]
    assert cache.open(other_start).num_cached == 0
    same_start = [*tokens(PAGE_SIZE), *tokens(PAGE_SIZE + 1, start=500)]
    assert cache.open(same_start).num_cached == PAGE_SIZE


def test_only_computed_pages_are_shared() -> None:
    cache = KvCache(8)
    prompt = tokens(3 * PAGE_SIZE)
    table = cache.open(prompt)
    cache.grow(table, len(prompt))
    assert cache.open(prompt).num_cached == 0
    cache.commit(table, prompt, 2 * PAGE_SIZE - 1)
    assert cache.open(prompt).num_cached == PAGE_SIZE
    cache.commit(table, prompt, 2 * PAGE_SIZE)
    assert cache.open(prompt).num_cached == 2 * PAGE_SIZE


def test_a_prefix_outlives_its_request_until_its_room_is_needed_and_its_end_goes_first() -> None:
    cache = KvCache(4)
    prompt = tokens(3 * PAGE_SIZE + 1)
    cache.close(filled(cache, prompt))
    assert cache.pages_free == 4
    other = cache.open(tokens(1, start=900))
    assert cache.grow(other, 2 * PAGE_SIZE)
    again = cache.open(prompt)
    assert again.num_cached == 2 * PAGE_SIZE
    assert not set(again.pages) & set(other.pages)


def test_two_copies_of_one_prefix_are_both_given_back() -> None:
    cache = KvCache(6)
    prompt = tokens(2 * PAGE_SIZE)
    tables = [cache.open(prompt), cache.open(prompt)]
    for table in tables:
        assert cache.grow(table, len(prompt))
    for table in tables:
        cache.commit(table, prompt, len(prompt))
    assert not set(tables[0].pages) & set(tables[1].pages)
    for table in tables:
        cache.close(table)
    assert cache.pages_free == 6


@dataclass
class Model:
    """A sequence as the test sees it."""

    table: PageTable
    token_ids: list[int]
    computed: int


class Pages(RuleBasedStateMachine):
    """Sequences with few different tokens, so that prefixes are often equal. `content` is what lies on each page."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = KvCache(9)
        self.sequences: list[Model] = []
        self.content: dict[int, list[int]] = {page: [-1] * PAGE_SIZE for page in range(9)}

    @rule(heads=st.lists(st.integers(0, 1), min_size=1, max_size=4), tail=st.integers(0, PAGE_SIZE - 1))
    def open(self, heads: list[int], tail: int) -> None:
        token_ids = [head for head in heads for _ in range(PAGE_SIZE)][: len(heads) * PAGE_SIZE - tail]
        table = self.cache.open(token_ids)
        for position in range(table.num_cached):
            page = table.pages[position // PAGE_SIZE]
            assert self.content[page][position % PAGE_SIZE] == token_ids[position], "a shared page holds other tokens"
        self.sequences.append(Model(table, token_ids, table.num_cached))

    @precondition(lambda self: self.sequences)
    @rule(data=st.data(), count=st.integers(1, 2 * PAGE_SIZE))
    def compute(self, data: st.DataObject, count: int) -> None:
        sequence = data.draw(st.sampled_from(self.sequences))
        end = min(sequence.computed + count, len(sequence.token_ids))
        before, free = list(sequence.table.pages), self.cache.pages_free
        if not self.cache.grow(sequence.table, end):
            assert pages_for(end) - len(before) > free
            assert sequence.table.pages == before
            return
        for position in range(sequence.computed, end):
            page = sequence.table.pages[position // PAGE_SIZE]
            holders = [s for s in self.sequences if page in s.table.pages]
            assert holders == [sequence], "a page that is written belongs to one sequence"
            self.content[page][position % PAGE_SIZE] = sequence.token_ids[position]
        sequence.computed = end
        self.cache.commit(sequence.table, sequence.token_ids, end)

    @precondition(lambda self: self.sequences)
    @rule(data=st.data(), token=st.integers(0, 1))
    def append(self, data: st.DataObject, token: int) -> None:
        data.draw(st.sampled_from(self.sequences)).token_ids.append(token)

    @precondition(lambda self: self.sequences)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(self.sequences))
        self.cache.close(sequence.table)
        self.sequences = [other for other in self.sequences if other is not sequence]

    @invariant()
    def held_and_free_pages_are_all_pages(self) -> None:
        held = {page for sequence in self.sequences for page in sequence.table.pages}
        assert len(held) + self.cache.pages_free == self.cache.pages_total
        for sequence in self.sequences:
            assert len(set(sequence.table.pages)) == len(sequence.table.pages)

    @invariant()
    def nobody_wrote_over_what_a_sequence_computed(self) -> None:
        for sequence in self.sequences:
            for position in range(sequence.computed):
                page = sequence.table.pages[position // PAGE_SIZE]
                assert self.content[page][position % PAGE_SIZE] == sequence.token_ids[position]

    def teardown(self) -> None:
        for sequence in self.sequences:
            self.cache.close(sequence.table)
        assert self.cache.pages_free == self.cache.pages_total


TestPages = Pages.TestCase
TestPages.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
