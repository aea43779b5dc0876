// Computes: for each row, one new token of a sequence: RoPE of its queries and key (RMSNorm before it where given),
//   append of its key and value to the cache, and its attention over the sequence: softmax(scale q K^T) V.
// Arguments: qkv, keys, values, positions, context_lengths, page_tables, turns, q_norm, k_norm, out, partials,
//   counters, rows, q_heads, kv_heads, max_pages, most, early, exchange, eps, scale
// Requires: rows >= 1; kv_heads >= 1; q_heads % kv_heads == 0; max_pages >= 1; 1 <= most <= 96; early in (0, 1);
//   exchange in (0, 1); (q_norm == 0) == (k_norm == 0)
// Launch: attention_decode: grid (splits of the longest context, at most `most`; kv_heads * ceil(q_heads / kv_heads /
//   8); rows), block 128; -DHEAD_DIM; 512 HEAD_DIM bytes of shared memory where COPIED. A row's own length says how
//   many splits work. `exchange` 1: all blocks run at once (the caller has counted them), wait for each other's
//   findings, and each combines a part of the result. `exchange` 0: attention_combine follows, grid (8, the same,
//   rows), block 128. `early` 1: positions, context_lengths, page_tables and the cache before each row's position were
//   written before a launch that did not overlap its predecessor, so they are read before the previous kernel ends.
// Numerics: queries 22 bits, cache float16, weights float16 in 0..1, sums float32; base-2 softmax; splits combined in
//   their order. The same bits for a row alone, in any batch, and in every run. Position -1 is padding: no append,
//   zeros.
// Oracle: float64 softmax over the float16 cache in tests/gpu/test_attention.py.
// Measured: kernels/README.md.
// Source: online softmax: Milakov and Gimelshein 2018; splitting over the context: Dao et al. 2023 (Flash-Decoding);
//   RoPE: Su et al. 2021; numbers that carry their own flag: the low-latency protocol of NCCL.
#include "attention_steps.cuh"

// What a warp takes of the row: two query heads, the last warp the key too, the one before it the value.
struct Inputs {
  HeadPairs queries[QUERIES / WARPS], key;
  float value[(HEAD_DIM + WARP - 1) / WARP];

  __device__ __forceinline__ void load(const AttentionDecodeArguments& a, const float* row, bool own, const Place& p) {
#pragma unroll
    for (int i = 0; i < QUERIES / WARPS; i++)
      queries[i].load(row + (i64)(p.first_head + min(p.warp + WARPS * i, p.heads - 1)) * HEAD_DIM, p.lane);
    const float* keys = row + (i64)(a.q_heads + p.kv_head) * HEAD_DIM;
    if (own && p.warp == WARPS - 1) key.load(keys, p.lane);
    if (own && p.warp == WARPS - 2) {
      const float* values = keys + (i64)a.kv_heads * HEAD_DIM;
#pragma unroll
      for (int d = p.lane; d < HEAD_DIM; d += WARP) value[d / WARP] = load_now(values + d);
    }
  }
};

// Normed and rotated query heads into shared memory, each as two float16 numbers.
__device__ __forceinline__ void set_queries(Shared& s, const AttentionDecodeArguments& a, Inputs& in,
                                            const Rotation& r, const Place& p) {
#pragma unroll
  for (int n = 0; n < QUERIES / WARPS; n++) {
    const int h = p.warp + WARPS * n;
    HeadPairs& q = in.queries[n];
    if (a.q_norm) q.norm(a.q_norm, a.eps, p.lane);
    q.rotate(r);
    const float scale = h < p.heads ? a.scale * LOG2_E : 0.0f;
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = p.lane + WARP * i;
      if (pair >= PAIRS) continue;
      u32 high, low;
      split_pair(q.first[i] * scale, q.second[i] * scale, high, low);
      s.high[h][pair] = (u16)high, s.high[h][pair + PAIRS] = (u16)(high >> 16);
      s.low[h][pair] = (u16)low, s.low[h][pair + PAIRS] = (u16)(low >> 16);
    }
  }
}

// The row's own key and value into shared memory and, by one block of those that share a KV head, into the cache.
__device__ __forceinline__ void append(Shared& s, const AttentionDecodeArguments& a, Inputs& in, const Rotation& r,
                                       const Place& p, int page, int slot) {
  const bool write = p.first_of_kv_head;
  const i64 offset = page_offset(page, p.kv_head, a.kv_heads);
  if (p.warp == WARPS - 1) {
    if (a.k_norm) in.key.norm(a.k_norm, a.eps, p.lane);
    in.key.rotate(r);
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = p.lane + WARP * i;
      if (pair >= PAIRS) continue;
      const u16 first = float_to_half(in.key.first[i]), second = float_to_half(in.key.second[i]);
      u16* to = a.keys + offset + slot * HEAD_DIM + pair;
      s.key[pair] = first, s.key[pair + PAIRS] = second;
      if (write) to[0] = first, to[PAIRS] = second;
    }
  } else if (p.warp == WARPS - 2) {
#pragma unroll
    for (int d = p.lane; d < HEAD_DIM; d += WARP) {
      const u16 value = float_to_half(in.value[d / WARP]);
      s.value[d] = value;
      if (write) a.values[offset + d * PAGE_SIZE + slot] = value;
    }
  }
}

__device__ __forceinline__ void get_queries(Queries& q, const Shared& s, int lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int d = 0; d < KEY_RUNS; d++) {
    q.high[d] = *(const uint4*)&s.high[g][32 * d + 8 * t];
    q.low[d] = *(const uint4*)&s.low[g][32 * d + 8 * t];
  }
  if (KEY_TAIL) {
    q.high_tail = *(const uint2*)&s.high[g][32 * KEY_RUNS + 4 * t];
    q.low_tail = *(const uint2*)&s.low[g][32 * KEY_RUNS + 4 * t];
  }
}

__device__ __forceinline__ void share(Shared& s, const Progress& progress, const Place& p) {
  const int g = p.lane / 4, t = p.lane % 4;
#pragma unroll
  for (int c = 0; c < 2; c++) {
    if (g == 0) s.top[p.warp][2 * t + c] = progress.top[c], s.sum[p.warp][2 * t + c] = progress.sum[c];
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) {
      s.output[p.warp][2 * t + c][16 * i + g] = progress.output[i][c];
      s.output[p.warp][2 * t + c][16 * i + g + 8] = progress.output[i][c + 2];
    }
  }
}

// let_next_start() is left out: the next kernel starts when this one ends, else its loads stand in the way of these.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
attention_decode(const __grid_constant__ AttentionDecodeArguments a) {
  __shared__ __align__(16) Shared s;
  const int split = blockIdx.x, row = blockIdx.z;
  Place p;
  p.set(a);
  if (!a.early) wait_for_previous();

  Steps steps;
  steps.pages = a.page_tables + (i64)row * a.max_pages;
  // Where no split is longer than the least, its first page is known before the length is, and one wait is spared.
  const int guess = split * (LEAST / PAGE_SIZE) + p.warp / 2, guessed = guess < a.max_pages ? steps.pages[guess] : 0;
  Splits splits;
  splits.set(a, row);
  const int position = splits.position;
  const bool own = split == splits.count - 1;  // the row's own token is among the last split's
  const int own_page = own ? steps.pages[position / PAGE_SIZE] : 0;
  steps.base = split * splits.tokens + p.warp * STEP;
  steps.end = min(splits.limit, (split + 1) * splits.tokens);
  Staged staged;
  steps.open(a, staged, guess, guessed, p);
  Rotation rotation;
  rotation.set(a.turns, position, p.lane);
  steps.first(a, staged, p);
  if (a.early) wait_for_previous();

  float* out = a.out + ((i64)row * a.q_heads + p.first_head) * HEAD_DIM;
  if (split >= splits.count) {
    if (position < 0 && split == 0)
#pragma unroll 1
      for (int d = threadIdx.x; d < p.heads * HEAD_DIM; d += THREADS) out[d] = 0.0f;
    return;
  }
  Inputs in;
  in.load(a, a.qkv + (i64)row * (a.q_heads + 2 * a.kv_heads) * HEAD_DIM, own, p);
  const i64 place = (i64)row * gridDim.y + blockIdx.y;
  const u32 tag = splits.count > 1 ? *(volatile u32*)(a.counters + place) + 1 : 0;
  set_queries(s, a, in, rotation, p);
  if (own) append(s, a, in, rotation, p, own_page, position % PAGE_SIZE);
  __syncthreads();
  Queries q;
  if (STAGED) get_queries(q, s, p.lane);
  Progress progress;
  progress.clear();
  while (steps.base < steps.end) {
    const int count = position - steps.base;  // tokens of the step before the row's own
    float scores[2][4];
    u32 weights[KEY_TILES];
    if (!STAGED) {  // read again, not held: there are not registers enough
      asm volatile("" ::: "memory");
      get_queries(q, s, p.lane);
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      steps.key(a, staged, i, p);
      if (count < STEP) staged.keys[i].insert(s.key, count, i, p.lane);
      score(scores[i], staged.keys[i], q);
    }
    steps.next_keys(a, staged, p);
    if (count < STEP) mask(scores, count + 1, count + 1, p.lane);
    soften(weights, scores, progress);
    ValueEnd<true> end_of_values;
    if (count < STEP) end_of_values.set(count, p.lane);
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) {
      steps.value(a, staged, i, p);
      if (count < STEP) end_of_values.apply(staged.values[i], s.value, i, p.lane);
      add_values(progress.output[i], staged.values[i], weights);
    }
    steps.next_values(a, staged, p);
  }
  progress.finish();
  share(s, progress, p);
  __syncthreads();

  WarpsCombined combined;
  combined.set(s, p);
  if (splits.count == 1) return combined.write(out, p);
  Partials partials;
  partials.set(a, place);
  combined.leave(partials, split, tag, p);
  if (!a.exchange) return;
  combine_share(s, out, partials, tag, split, splits.count, p);
  // All splits have written something, so all have read the count before.
  if (split == 0 && threadIdx.x == 0) a.counters[place] = tag;
}

// What the blocks of attention_decode do themselves where all of them run at once.
extern "C" __global__ void __launch_bounds__(THREADS)
attention_combine(const __grid_constant__ AttentionDecodeArguments a) {
  wait_for_previous();
  __shared__ __align__(16) Shared s;
  const int h = blockIdx.x, row = blockIdx.z;
  const i64 place = (i64)row * gridDim.y + blockIdx.y;
  Place p;
  p.set(a);
  Splits splits;
  splits.set(a, row);
  if (splits.count < 2 || h >= p.heads) return;
  if (h == 0 && threadIdx.x == 0) a.counters[place]++;
  Partials partials;
  partials.set(a, place);
  if (p.warp == 0) {
    SplitStats stats;
    stats.load(partials, splits.count, h, p.lane);
    stats.weigh(s, splits.count, h, p.lane);
  }
  __syncthreads();
  float* out = a.out + ((i64)row * a.q_heads + p.first_head + h) * HEAD_DIM;
  for (int d = threadIdx.x; d < HEAD_DIM; d += THREADS) {
    float total = 0.0f;
#pragma unroll 4
    for (int segment = 0; segment < splits.count; segment += SEGMENT) {
      const u64* from = partials.of_split(segment) + h * HEAD_DIM + d;
      u64 loaded[SEGMENT];
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < SEGMENT; j++)
        if (segment + j < splits.count) loaded[j] = from[j * VALUES];
#pragma unroll
      for (int j = 0; j < SEGMENT; j++)
        if (segment + j < splits.count) sum = fmaf(number_of(loaded[j]), s.weights[h][segment + j], sum);
      total = segment ? total + sum : sum;
    }
    out[d] = total * s.last[h];
  }
}
