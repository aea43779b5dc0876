// Computes: causal attention of chunks of several sequences: softmax(scale q K^T) V of each token over its sequence
//   up to itself. The queries are rotated and the chunk's keys and values are in the cache.
// Arguments: qkv, keys, values, query_starts, context_lengths, page_tables, out, q_heads, kv_heads, max_pages, scale
// Requires: kv_heads >= 1; q_heads % kv_heads == 0; max_pages >= 1
// Launch: grid (ceil(longest chunk * q_heads / kv_heads / 64), kv_heads, sequences), block 128; -DHEAD_DIM.
// Numerics: queries 22 bits, cache float16, weights float16 in 0..1, sums float32; base-2 softmax, 32 tokens at a
//   time from position 0 whatever the chunk, so that a token's result is the same bits in every chunking.
// Oracle: float64 softmax over the float16 cache in tests/gpu/test_attention.py.
// Measured: kernels/README.md.
// Source: online softmax: Milakov and Gimelshein 2018; queries of one KV head as neighbouring columns: Ainslie et al.
//   2023 (GQA).
#include "attention.cuh"

#define WARPS 4
#define THREADS (WARPS * WARP)
#define TILES (HEAD_DIM <= 128 ? 2 : 1)   // of 8 queries a warp
#define STAGES (HEAD_DIM <= 128 ? 2 : 1)  // steps of the cache in shared memory
// Keys lie a multiple of 128 bytes and 64 apart, so that two of them are read without a conflict of banks.
#define KEY_STRIDE (HEAD_DIM + (192 - 2 * HEAD_DIM % 128) % 128 / 2)
#define WARP_QUERIES (8 * TILES)
#define BLOCK_QUERIES (WARPS * WARP_QUERIES)

struct AttentionPrefillArguments {
  const float* qkv;            // (tokens, (q_heads + 2 kv_heads) HEAD_DIM)
  const u16* keys;             // [page][kv_head][64][HEAD_DIM]
  const u16* values;           // [page][kv_head][HEAD_DIM][64]
  const int* query_starts;     // (sequences + 1)
  const int* context_lengths;  // (sequences): the queries are the last tokens of these
  const int* page_tables;      // (sequences, max_pages)
  float* out;                  // (tokens, q_heads HEAD_DIM)
  int q_heads, kv_heads, max_pages;
  float scale;
};

// A query is a token and a head of the KV head's; they are counted token by token.
struct Chunk {
  int first_row, tokens, length, ratio, kv_head;

  __device__ __forceinline__ int queries() const { return tokens * ratio; }
  __device__ __forceinline__ int token(int query) const { return min(query, queries() - 1) / ratio; }
  __device__ __forceinline__ int position(int query) const { return length - tokens + token(query); }
  // Behind the first head of the first row of an array of `heads` heads a row.
  __device__ __forceinline__ i64 offset(int query, int heads) const {
    const int head = min(query, queries() - 1) % ratio;
    return ((i64)(first_row + token(query)) * heads + kv_head * ratio + head) * HEAD_DIM;
  }
};

struct Step {
  u16 keys[STEP * KEY_STRIDE];
  u16 values[HEAD_DIM * STEP];

  // Starts the copy of 32 tokens from position `base` on.
  __device__ __forceinline__ void start(const AttentionPrefillArguments& a, const int* pages, int kv_head, int base) {
    const i64 offset = page_offset(pages[base / PAGE_SIZE], kv_head, a.kv_heads);
    const u16* from_keys = a.keys + offset + base % PAGE_SIZE * HEAD_DIM;
    const u16* from_values = a.values + offset + base % PAGE_SIZE;
#pragma unroll
    for (int i = threadIdx.x; i < STEP * (HEAD_DIM / 8); i += THREADS) {
      const int token = i / (HEAD_DIM / 8), run = i % (HEAD_DIM / 8);
      copy_16_async(keys + token * KEY_STRIDE + 8 * run, from_keys + 8 * i);
    }
#pragma unroll
    for (int i = threadIdx.x; i < HEAD_DIM * (STEP / 8); i += THREADS)
      copy_16_async(values + 8 * i, from_values + i / (STEP / 8) * PAGE_SIZE + i % (STEP / 8) * 8);
    end_copy_group();
  }
};

__device__ __forceinline__ void split_4(const float* q, float scale, u32& high0, u32& high1, u32& low0, u32& low1) {
  const float4 x = *(const float4*)q;
  split_pair(x.x * scale, x.y * scale, high0, low0);
  split_pair(x.z * scale, x.w * scale, high1, low1);
}

// Query lane / 4 of 8: `query` points to it.
__device__ __forceinline__ void load_queries(Queries& q, const float* query, float scale, int t) {
#pragma unroll
  for (int d = 0; d < KEY_RUNS; d++) {
    const float* run = query + 32 * d + 8 * t;
    split_4(run, scale, q.high[d].x, q.high[d].y, q.low[d].x, q.low[d].y);
    split_4(run + 4, scale, q.high[d].z, q.high[d].w, q.low[d].z, q.low[d].w);
  }
  if (KEY_TAIL) split_4(query + 32 * KEY_RUNS + 4 * t, scale, q.high_tail.x, q.high_tail.y, q.low_tail.x, q.low_tail.y);
}

__device__ __forceinline__ void store(const Progress& p, float* const (&out)[2], int g) {
#pragma unroll
  for (int c = 0; c < 2; c++) {
    if (!out[c]) continue;
    const float by = 1.0f / p.sum[c];
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) {
      out[c][16 * i + g] = p.output[i][c] * by;
      out[c][16 * i + g + 8] = p.output[i][c + 2] * by;
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
attention_prefill(const __grid_constant__ AttentionPrefillArguments a) {
  let_next_start();
  wait_for_previous();
  const int lane = threadIdx.x % WARP, g = lane / 4, t = lane % 4, sequence = blockIdx.z;
  Chunk chunk;
  chunk.first_row = a.query_starts[sequence], chunk.tokens = a.query_starts[sequence + 1] - chunk.first_row;
  chunk.length = a.context_lengths[sequence], chunk.ratio = a.q_heads / a.kv_heads, chunk.kv_head = blockIdx.y;
  // Later tokens see more of the context: theirs are the first blocks to start.
  const int block_first = (gridDim.x - 1 - blockIdx.x) * BLOCK_QUERIES;
  const int first = block_first + threadIdx.x / WARP * WARP_QUERIES;
  if (block_first >= chunk.queries()) return;

  __shared__ __align__(16) Step steps[STAGES];
  const int* pages = a.page_tables + (i64)sequence * a.max_pages;
  if (STAGES > 1) steps[0].start(a, pages, chunk.kv_head, 0);
  Queries q[TILES];
  Progress progress[TILES];
  int positions[TILES][2];
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    const int query = first + 8 * n;
    load_queries(q[n], a.qkv + chunk.offset(query + g, a.q_heads + 2 * a.kv_heads), a.scale * LOG2_E, t);
    progress[n].clear();
    positions[n][0] = chunk.position(query + 2 * t), positions[n][1] = chunk.position(query + 2 * t + 1);
  }
  const int first_position = chunk.position(first), last_position = chunk.position(first + WARP_QUERIES - 1);
  const int end = chunk.position(block_first + BLOCK_QUERIES - 1) + 1;
  for (int base = 0; base < end; base += STEP) {
    const Step& step = steps[base / STEP % STAGES];
    const int ahead = base + (STAGES - 1) * STEP;
    if (ahead < end) steps[ahead / STEP % STAGES].start(a, pages, chunk.kv_head, ahead);
    else end_copy_group();
    wait_for_copies<STAGES - 1>();
    __syncthreads();
    if (base <= last_position) {
      float scores[TILES][2][4];
      u32 weights[TILES][KEY_TILES];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        KeyPair keys;
        keys.read(step.keys, KEY_STRIDE, i, lane);
#pragma unroll
        for (int n = 0; n < TILES; n++) score(scores[n][i], keys, q[n]);
      }
#pragma unroll
      for (int n = 0; n < TILES; n++) {
        if (base + STEP > first_position + 1)
          mask(scores[n], positions[n][0] + 1 - base, positions[n][1] + 1 - base, lane);
        soften(weights[n], scores[n], progress[n]);
      }
      ValueEnd<false> end_of_values;
      const bool ends = base + STEP > chunk.length;
      if (ends) end_of_values.set(chunk.length - base, lane);
#pragma unroll
      for (int i = 0; i < DIM_TILES; i++) {
        ValueTile values;
        values.read(step.values, STEP, i, lane);
        if (ends) end_of_values.apply(values, 0, i, lane);
#pragma unroll
        for (int n = 0; n < TILES; n++) add_values(progress[n].output[i], values, weights[n]);
      }
    }
    __syncthreads();  // the step's place is free for the one after the next
  }
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    const int query = first + 8 * n + 2 * t;
    float* out[2];
#pragma unroll
    for (int c = 0; c < 2; c++) out[c] = query + c < chunk.queries() ? a.out + chunk.offset(query + c, a.q_heads) : 0;
    progress[n].finish();
    store(progress[n], out, g);
  }
}
