"""Everything that the decoder needs to know of a model. No code looks at a family's name after this is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """Llama 3's frequency-dependent scaling (`rope_type: llama3`) or plain linear scaling.

    Attributes:
        kind: "llama3" or "linear".
        original_context: context the model was trained with (llama3 only).
    """

    kind: str
    factor: float
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_context: int = 8192


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """Shape of a dense decoder-only transformer with GQA, RoPE (half-split pairing) and a gated MLP.

    Attributes:
        architecture: "qwen2", "llama" or "qwen3"; for display only.
        qkv_bias: Q, K and V have a bias (Qwen2).
        qk_norm: RMSNorm over each head of Q and K before RoPE (Qwen3).
        tied_head: the head is the embedding table.
        rope_factors: per-frequency divisors (GGUF's rope_freqs.weight), () where none.
    """

    architecture: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_context: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling | None = None
    rope_factors: tuple[float, ...] = ()
    qkv_bias: bool = False
    qk_norm: bool = False
    tied_head: bool = False

    @property
    def q_size(self) -> int:
        """Width of all query heads together."""
        return self.num_q_heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of all key heads together (values alike)."""
        return self.num_kv_heads * self.head_dim
