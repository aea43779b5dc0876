"""How weights, KV and workspace lie in memory for the CPU kernels. Pure arithmetic, no library needed.

Weights lie in tiles of 16 rows, so that a vector instruction multiplies 16 rows by 4 neighbouring k at once (a "quad")
and no sum across lanes is ever needed. A block is 32 k of a tile, or 256 k (8 groups of 32) for the K kinds; it takes
exactly the bits of the file, only in another order:

    tile t: | block 0 | block 1 | ...        block: | scales | group 0: high bits, nibbles | group 1: ... |

    nibbles of one group of 32 k, 256 bytes:
        byte     0        4        8            60 | 64                  | 128     | 192
        low   row 0    row 1    row 2  ...  row 15 | quad 1 of all rows  | quad 2  | quad 3
              quad 0   quad 0   quad 0      quad 0 |                     |         |
        high  quad 4   quad 4   quad 4      quad 4 | quad 5              | quad 6  | quad 7

    high bits of one group:  5-bit kinds, 64 bytes: row r, byte i: bit j belongs to k = 4 j + i
                             Q6_K, 128 bytes (its LOW two bits; the nibbles hold the upper four): row r, byte i of
                             half h: bits 2 s and 2 s + 1 belong to k = 16 h + 4 s + i
    Q8_0 has no nibbles: 512 bytes of q + 128, quad after quad.

    scales:  Q4_0, Q5_0, Q8_0  16 x float16                        Q4_1, Q5_1  the same, then 16 x float16 minima
             Q4_K, Q5_K        3 words of 32 bits for each row: word w holds the 6-bit values 5 w to 5 w + 4 of
                               scale 0, min 0, scale 1, ..., and in bits 30 and 31 two bits of value 15; then
                               16 x float16 d and dmin
             Q6_K              16 int8 for each of 16 half groups, then 16 x float16 d

A head of Q6_K or Q8_0, and every embedding table (it may be the head too), lie split: the scales and the upper bits
(2 of 6, 4 of 8) in one stretch of memory, the lower nibbles in another, so that a first pass can read the upper bits
alone.

Matrices of float16, bfloat16 and float32 lie as (tile, k, 16 rows). Rows are padded with zeros to a multiple of 16.
"""

from __future__ import annotations

from dataclasses import dataclass

TILE = 16
ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class WeightKind:
    """One of the file's block types.

    Attributes:
        code: the kernels' number of it (enum weight_kind).
        block: k of a block; 1 for dense kinds.
        file_bytes: bytes of a block of one row in the file.
        scale_bytes, high_bytes, q_bytes: of a block of a tile.
    """

    name: str
    code: int
    block: int
    file_bytes: int
    scale_bytes: int = 0
    high_bytes: int = 0
    q_bytes: int = 0

    @property
    def dense(self) -> bool:
        """True for float kinds, which have no blocks."""
        return self.block == 1

    @property
    def groups(self) -> int:
        """Groups of 32 k in a block; 1 for dense kinds, where it means nothing."""
        return max(1, self.block // 32)

    @property
    def tile_block_bytes(self) -> int:
        """Bytes of a block of a tile."""
        return self.scale_bytes + self.high_bytes + self.q_bytes


KINDS = {
    kind.name: kind
    for kind in (
        WeightKind("q4_0", 0, 32, 18, 32, 0, 256),
        WeightKind("q4_1", 1, 32, 20, 64, 0, 256),
        WeightKind("q5_0", 2, 32, 22, 32, 64, 256),
        WeightKind("q5_1", 3, 32, 24, 64, 64, 256),
        WeightKind("q8_0", 4, 32, 34, 32, 0, 512),
        WeightKind("q4_k", 5, 256, 144, 256, 0, 2048),
        WeightKind("q5_k", 6, 256, 176, 256, 512, 2048),
        WeightKind("q6_k", 7, 256, 210, 288, 1024, 2048),
        WeightKind("f16", 8, 1, 2, 0, 0, 32),
        WeightKind("bf16", 9, 1, 2, 0, 0, 32),
        WeightKind("f32", 10, 1, 4, 0, 0, 64),
    )
}


@dataclass(frozen=True, slots=True)
class SplitKind:
    """How a kind lies in a head.

    Attributes:
        code, top_code: the kernels' numbers of all bits and of the upper bits alone.
        high_bytes, low_bytes: upper and lower bits of a block of a tile.
    """

    code: int
    top_code: int
    high_bytes: int
    low_bytes: int


SPLIT_KINDS = {"q6_k": SplitKind(11, 12, 1024, 2048), "q8_0": SplitKind(13, 14, 256, 256)}


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below value."""
    return -(-value // multiple) * multiple


def tiles_of(n: int) -> int:
    """Tiles that hold n rows."""
    return -(-n // TILE)


def row_bytes(kind: str, k: int) -> int:
    """Bytes of a row of k values in the file."""
    return k // KINDS[kind].block * KINDS[kind].file_bytes


def packed_bytes(kind: str, n: int, k: int) -> int:
    """Bytes of a packed (n, k) matrix, split or not."""
    of_kind = KINDS[kind]
    return round_up(tiles_of(n) * (k // of_kind.block) * of_kind.tile_block_bytes, ALIGNMENT)


def packed_split_bytes(kind: str, n: int, k: int) -> tuple[int, int]:
    """Bytes of the two stretches of a split (n, k) matrix; together as many as packed_bytes, up to the alignment."""
    blocks = tiles_of(n) * (k // KINDS[kind].block)
    upper = blocks * (KINDS[kind].scale_bytes + SPLIT_KINDS[kind].high_bytes)
    return round_up(upper, ALIGNMENT), round_up(blocks * SPLIT_KINDS[kind].low_bytes, ALIGNMENT)


HEAD_TOKENS = 4
"""Rows of logits that a head's pass computes together."""


def head_sizes(n: int, k: int) -> tuple[int, ...]:
    """Bytes of what a split head needs beside its weights: spread, channel, upper, list, sums (struct head)."""
    tiles = tiles_of(n)
    return 4 * n, 4 * k, 4 * HEAD_TOKENS * tiles, 4 * tiles, 4 * -(-n // 4096)


def head_bytes(n: int, k: int) -> int:
    """All of head_sizes."""
    return round_up(sum(head_sizes(n, k)), ALIGNMENT)


def value_dim(head_dim: int) -> int:
    """Values of a head in a KV page: head_dim rounded up to 16."""
    return round_up(head_dim, 16)


def kv_page_elements(num_kv_heads: int, head_dim: int, page_size: int) -> tuple[int, int]:
    """float16 elements of a layer's page: keys (kv_heads, head_dim, page_size), values (.., page_size, value_dim)."""
    return num_kv_heads * head_dim * page_size, num_kv_heads * page_size * value_dim(head_dim)


_ATTENTION_ROWS = 32
_ATTENTION_PAGE = 64
_MAX_SPLITS = 64


@dataclass(frozen=True, slots=True)
class WorkspaceSizes:
    """Bytes of the kernels' own workspace (workspace.h), without the activations that the caller holds.

    Attributes:
        scratch: of one thread.
        partials: what the splits of a long context leave behind.
    """

    act_q: int
    act_scale: int
    act_sum: int
    act_neg: int
    act_neg16: int
    scratch: int
    partials: int

    def total(self, threads: int) -> int:
        """Bytes of all of it."""
        acts = self.act_q + self.act_scale + self.act_sum + self.act_neg + self.act_neg16
        return acts + threads * self.scratch + self.partials


def workspace_sizes(max_tokens: int, max_k: int, num_kv_heads: int = 1, head_dim: int = 64) -> WorkspaceSizes:
    """Sizes for steps of up to max_tokens tokens and inputs of up to max_k values."""
    k = round_up(max_k, 32)
    groups = k // 32
    linear = 2 * max_tokens * TILE * 4 + k * TILE + 3 * groups * TILE * 4
    wide = value_dim(head_dim)
    attention = 4 * (_ATTENTION_PAGE * (head_dim + wide) + _ATTENTION_ROWS * (head_dim + _ATTENTION_PAGE + 2 * wide))
    return WorkspaceSizes(
        act_q=round_up(max_tokens * k, ALIGNMENT),
        act_scale=round_up(max_tokens * groups * 4, ALIGNMENT),
        act_sum=round_up(max_tokens * groups * 4, ALIGNMENT),
        act_neg=round_up(max_tokens * groups * 4, ALIGNMENT),
        act_neg16=round_up(max_tokens * groups * 8, ALIGNMENT),
        scratch=round_up(max(linear, attention), 4096),
        partials=round_up(num_kv_heads * _MAX_SPLITS * _ATTENTION_ROWS * (wide + 2) * 4, ALIGNMENT),
    )
