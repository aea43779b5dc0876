// Computes: RoPE of the queries and keys of a step's tokens (RMSNorm of each head before it where given): queries in
//   place, keys and values into the cache.
// Arguments: qkv, keys, values, positions, query_starts, page_tables, turns, q_norm, k_norm, tokens, sequences,
//   q_heads, kv_heads, max_pages, eps
// Requires: tokens >= 1; sequences >= 1; kv_heads >= 1; q_heads % kv_heads == 0; max_pages >= 1; (q_norm == 0) ==
//   (k_norm == 0)
// Launch: grid (tokens), block 256; -DHEAD_DIM.
// Numerics: float32; angles exact at any position (attention.cuh). Position -1 is padding: nothing is read or
//   written.
// Oracle: float64 in tests/gpu/test_attention.py.
// Measured: kernels/README.md.
// Source: RoPE: Su et al. 2021, pairs half a head apart.
#include "attention.cuh"

#define WARPS 8

struct RopeAppendArguments {
  float* qkv;               // (tokens, (q_heads + 2 kv_heads) HEAD_DIM)
  u16* keys;                // [page][kv_head][64][HEAD_DIM]
  u16* values;              // [page][kv_head][HEAD_DIM][64]
  const int* positions;     // (tokens)
  const int* query_starts;  // (sequences + 1)
  const int* page_tables;   // (sequences, max_pages)
  const u64* turns;         // (HEAD_DIM / 2): turns a position, times 2^64
  const float* q_norm;      // (HEAD_DIM) or null
  const float* k_norm;
  int tokens, sequences, q_heads, kv_heads, max_pages;
  float eps;
};

extern "C" __global__ void __launch_bounds__(WARPS * WARP) rope_append(const __grid_constant__ RopeAppendArguments a) {
  let_next_start();
  wait_for_previous();
  const int token = blockIdx.x, lane = threadIdx.x % WARP, position = a.positions[token];
  if (position < 0) return;
  int sequence = 0;
  while (sequence + 1 < a.sequences && a.query_starts[sequence + 1] <= token) sequence++;
  const int page = a.page_tables[(i64)sequence * a.max_pages + position / PAGE_SIZE], slot = position % PAGE_SIZE;
  Rotation rotation;
  rotation.set(a.turns, position, lane);
  float* row = a.qkv + (i64)token * (a.q_heads + 2 * a.kv_heads) * HEAD_DIM;
  for (int head = threadIdx.x / WARP; head < a.q_heads + a.kv_heads; head += WARPS) {
    float* values = row + (i64)head * HEAD_DIM;
    const bool is_key = head >= a.q_heads;
    const float* norm = is_key ? a.k_norm : a.q_norm;
    HeadPairs pairs;
    pairs.load(values, lane);
    if (norm) pairs.norm(norm, a.eps, lane);
    pairs.rotate(rotation);
    u16* key = a.keys + (is_key ? page_offset(page, head - a.q_heads, a.kv_heads) + slot * HEAD_DIM : 0);
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = lane + WARP * i;
      if (pair >= PAIRS) continue;
      if (is_key) key[pair] = float_to_half(pairs.first[i]), key[pair + PAIRS] = float_to_half(pairs.second[i]);
      else values[pair] = pairs.first[i], values[pair + PAIRS] = pairs.second[i];
    }
  }
  const float* values = row + (i64)(a.q_heads + a.kv_heads) * HEAD_DIM;
  for (int i = threadIdx.x; i < a.kv_heads * HEAD_DIM; i += WARPS * WARP) {
    const i64 offset = page_offset(page, i / HEAD_DIM, a.kv_heads) + i % HEAD_DIM * PAGE_SIZE + slot;
    a.values[offset] = float_to_half(values[i]);
  }
}
