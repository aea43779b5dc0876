"""Who holds which KV page: page tables, allocation and prefix sharing. Indices only; the pages lie in the backend.

A page is free, or held by one table that still writes it, or full. A full page never changes, so any number of tables
may hold it, and after the last has let go it stays as a cache until its room is needed. Full pages form a tree: a page
is known by the page before it and its own tokens, compared token by token, so that no two prefixes are confused.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from inference.backends.backend import PAGE_SIZE

_ROOT = 0
_Key = tuple[int, tuple[int, ...]]


@dataclass(slots=True, eq=False)
class PageTable:
    """The pages of one sequence, in the order of its positions.

    Attributes:
        pages: page i holds positions i * PAGE_SIZE onward.
        num_cached: tokens at the front whose keys and values were there already when the table was opened.
    """

    pages: list[int] = field(default_factory=list)
    num_cached: int = 0
    _nodes: list[int] = field(default_factory=list)

    @property
    def capacity(self) -> int:
        """Tokens that its pages can hold."""
        return len(self.pages) * PAGE_SIZE


def pages_for(num_tokens: int) -> int:
    """Pages that hold so many tokens."""
    return -(-num_tokens // PAGE_SIZE)


class KvCache:
    """Bookkeeping of a fixed number of pages."""

    def __init__(self, num_pages: int) -> None:
        self.pages_total = num_pages
        self._free = deque(range(num_pages))
        self._holders = [0] * num_pages
        self._pages: dict[_Key, int] = {}
        self._keys: dict[int, _Key] = {}
        self._nodes: dict[_Key, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._next_node = _ROOT + 1

    @property
    def pages_free(self) -> int:
        """Pages that can be had: the empty ones, and full ones that nobody holds any more."""
        return len(self._free) + len(self._idle)

    def open(self, token_ids: Sequence[int]) -> PageTable:
        """A table whose first pages are shared with equal prefixes; the last token is never among them.

        Its logits are wanted, so one token at least has to be computed.
        """
        table = PageTable()
        parent = _ROOT
        for start in range(0, (len(token_ids) - 1) // PAGE_SIZE * PAGE_SIZE, PAGE_SIZE):
            key = (parent, tuple(token_ids[start : start + PAGE_SIZE]))
            page = self._pages.get(key)
            if page is None:
                break
            self._idle.pop(page, None)
            self._holders[page] += 1
            parent = self._nodes[key]
            table.pages.append(page)
            table._nodes.append(parent)
        table.num_cached = table.capacity
        return table

    def grow(self, table: PageTable, num_tokens: int) -> bool:
        """Gives the table pages for its first `num_tokens` positions; all that it lacks, or none and False."""
        missing = pages_for(num_tokens) - len(table.pages)
        if missing > self.pages_free:
            return False
        for _ in range(missing):
            page = self._free.popleft() if self._free else self._evict()
            self._holders[page] = 1
            table.pages.append(page)
        return True

    def commit(self, table: PageTable, token_ids: Sequence[int], num_tokens: int) -> None:
        """Says that the first `num_tokens` positions are written; pages that this fills can be shared from now on."""
        while (len(table._nodes) + 1) * PAGE_SIZE <= num_tokens:
            index = len(table._nodes)
            parent = table._nodes[-1] if table._nodes else _ROOT
            key = (parent, tuple(token_ids[index * PAGE_SIZE : (index + 1) * PAGE_SIZE]))
            if key not in self._pages:
                page = table.pages[index]
                self._pages[key], self._keys[page], self._nodes[key] = page, key, self._next_node
                self._next_node += 1
            # Where another sequence filled an equal page first, this one's copy stays private.
            table._nodes.append(self._nodes[key])

    def close(self, table: PageTable) -> None:
        """Lets go of the table's pages at once; full ones stay as a cache, the front of a prefix longest."""
        for page in reversed(table.pages):
            self._holders[page] -= 1
            if self._holders[page]:
                continue
            if page in self._keys:
                self._idle[page] = None
            else:
                self._free.append(page)
        table.pages.clear()
        table._nodes.clear()

    def _evict(self) -> int:
        """Takes the full page that has been without a holder for longest."""
        page, _ = self._idle.popitem(last=False)
        key = self._keys.pop(page)
        del self._pages[key], self._nodes[key]
        return page
