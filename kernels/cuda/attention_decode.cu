// Computes: for each row, one new token of a sequence: RoPE of its queries and key (RMSNorm before it where given),
//   append of its key and value to the cache, and its attention over the sequence: softmax(scale q K^T) V.
// Arguments: qkv, keys, values, positions, context_lengths, page_tables, turns, q_norm, k_norm, out, partials,
//   counters, rows, q_heads, kv_heads, max_pages, early, eps, scale
// Requires: rows >= 1; kv_heads >= 1; q_heads % kv_heads == 0; max_pages >= 1; early in (0, 1); (q_norm == 0) ==
//   (k_norm == 0)
// Launch: grid (MAX_SPLITS, kv_heads * ceil(q_heads / kv_heads / 8), rows), block 256 (128 where HEAD_DIM > 128);
//   -DHEAD_DIM. A row's own length says how many splits work; the last of them to arrive combines all, in their
//   order, and leaves its counter at 0. `early` 1: positions, context_lengths, page_tables and the cache before each
//   row's position were written before a launch that did not overlap its predecessor, so they are read before the
//   previous kernel ends.
// Numerics: queries 22 bits, cache float16, weights float16 in 0..1, sums float32; base-2 softmax. The same bits for
//   a row alone, in any batch, and in every run. Position -1 is padding: no append, zeros.
// Oracle: float64 softmax over the float16 cache in tests/gpu/test_attention.py.
// Measured: kernels/README.md.
// Source: online softmax: Milakov and Gimelshein 2018; splitting over the context: Dao et al. 2023 (Flash-Decoding);
//   RoPE: Su et al. 2021.
#include "attention.cuh"

#define STAGED (HEAD_DIM <= 128)      // a step's keys and values fit into the registers
#define WARPS (STAGED ? 8 : 4)
#define QUERIES 8
#define SPLIT_TOKENS (WARPS * STEP)
#define MAX_SPLITS WARP
#define QUERY_STRIDE (HEAD_DIM + 8)   // float16; keeps the rows in different banks
#define OUTPUT_STRIDE (HEAD_DIM + 4)  // float32; likewise

struct AttentionDecodeArguments {
  const float* qkv;            // (rows, (q_heads + 2 kv_heads) HEAD_DIM)
  u16* keys;                   // [page][kv_head][64][HEAD_DIM]
  u16* values;                 // [page][kv_head][HEAD_DIM][64]
  const int* positions;        // (rows)
  const int* context_lengths;  // (rows): position + 1
  const int* page_tables;      // (rows, max_pages)
  const u64* turns;            // (HEAD_DIM / 2): turns a position, times 2^64
  const float* q_norm;         // (HEAD_DIM) or null
  const float* k_norm;
  float* out;                  // (rows, q_heads HEAD_DIM)
  float* partials;             // (rows, grid y, MAX_SPLITS, 8, HEAD_DIM), then (.., 8, 2): largest score and sum
  u32* counters;               // (rows, grid y), zeros
  int rows, q_heads, kv_heads, max_pages, early;
  float eps, scale;
};

struct Shared {
  union {
    struct {
      u16 high[QUERIES][QUERY_STRIDE], low[QUERIES][QUERY_STRIDE];
    } query;
    float output[WARPS][QUERIES][OUTPUT_STRIDE];
  };
  u16 key[HEAD_DIM], value[HEAD_DIM];
  float top[WARPS][QUERIES], sum[WARPS][QUERIES];
  u32 arrived;
};

struct Place {
  int kv_head, first_head, heads;  // of this block: up to 8 query heads of one KV head
  int lane, warp;
};

// Normed and rotated query heads into shared memory, each as two float16 numbers.
__device__ __forceinline__ void set_queries(Shared& s, const AttentionDecodeArguments& a, const float* row,
                                            const Rotation& r, const Place& p) {
#pragma unroll
  for (int h = p.warp; h < QUERIES; h += WARPS) {
    HeadPairs q;
    if (h < p.heads) {
      q.load(row + (i64)(p.first_head + h) * HEAD_DIM, p.lane);
      if (a.q_norm) q.norm(a.q_norm, a.eps, p.lane);
      q.rotate(r);
    }
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = p.lane + WARP * i;
      if (pair >= PAIRS) continue;
      u32 high = 0, low = 0;
      if (h < p.heads) split_pair(q.first[i] * (a.scale * LOG2_E), q.second[i] * (a.scale * LOG2_E), high, low);
      s.query.high[h][pair] = (u16)high;
      s.query.high[h][pair + PAIRS] = (u16)(high >> 16);
      s.query.low[h][pair] = (u16)low;
      s.query.low[h][pair + PAIRS] = (u16)(low >> 16);
    }
  }
}

// The row's own key and value into shared memory and, by one block of those that share a KV head, into the cache.
__device__ __forceinline__ void append(Shared& s, const AttentionDecodeArguments& a, const float* row,
                                       const Rotation& r, const Place& p, int page, int slot) {
  const bool write = p.first_head == p.kv_head * (a.q_heads / a.kv_heads);
  const i64 offset = page_offset(page, p.kv_head, a.kv_heads);
  const float* key = row + (i64)(a.q_heads + p.kv_head) * HEAD_DIM;
  if (p.warp == WARPS - 1) {
    HeadPairs k;
    k.load(key, p.lane);
    if (a.k_norm) k.norm(a.k_norm, a.eps, p.lane);
    k.rotate(r);
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = p.lane + WARP * i;
      if (pair >= PAIRS) continue;
      u16* to = a.keys + offset + slot * HEAD_DIM + pair;
      s.key[pair] = float_to_half(k.first[i]);
      s.key[pair + PAIRS] = float_to_half(k.second[i]);
      if (write) to[0] = s.key[pair], to[PAIRS] = s.key[pair + PAIRS];
    }
  } else if (p.warp == WARPS - 2) {
    const float* value = key + (i64)a.kv_heads * HEAD_DIM;
    for (int d = p.lane; d < HEAD_DIM; d += WARP) {
      s.value[d] = float_to_half(value[d]);
      if (write) a.values[offset + d * PAGE_SIZE + slot] = s.value[d];
    }
  }
}

__device__ __forceinline__ void get_queries(Queries& q, const Shared& s, int lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int d = 0; d < KEY_RUNS; d++) {
    q.high[d] = *(const uint4*)&s.query.high[g][32 * d + 8 * t];
    q.low[d] = *(const uint4*)&s.query.low[g][32 * d + 8 * t];
  }
  if (KEY_TAIL) {
    q.high_tail = *(const uint2*)&s.query.high[g][32 * KEY_RUNS + 4 * t];
    q.low_tail = *(const uint2*)&s.query.low[g][32 * KEY_RUNS + 4 * t];
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

__device__ __forceinline__ float4 load_from_l2(const float* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

__device__ __forceinline__ void add_scaled(float4& sum, const float4& x, float by) {
  sum.x += x.x * by, sum.y += x.y * by, sum.z += x.z * by, sum.w += x.w * by;
}

// Combines the warps' findings of query h, in their order; the only split writes the result, others a partial one.
__device__ __forceinline__ void combine_warps(const Shared& s, float* out, float* partial, float* stats, int h,
                                              int lane) {
  float top = -INFINITY_F, sum = 0.0f, by[WARPS];
#pragma unroll
  for (int w = 0; w < WARPS; w++) top = fmaxf(top, s.top[w][h]);
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    by[w] = exp2_fast(s.top[w][h] - top);
    sum += s.sum[w][h] * by[w];
  }
  if (partial && lane == 0) stats[0] = top, stats[1] = sum;
  const float last = partial ? 1.0f : 1.0f / sum;
  for (int d = 4 * lane; d < HEAD_DIM; d += 4 * WARP) {
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int w = 0; w < WARPS; w++)
      if (s.top[w][h] != -INFINITY_F) add_scaled(total, *(const float4*)&s.output[w][h][d], by[w]);
    total.x *= last, total.y *= last, total.z *= last, total.w *= last;
    *(float4*)((partial ? partial : out) + d) = total;
  }
}

// Combines all splits of a query, in their order.
__device__ __forceinline__ void combine_splits(float* out, const float* partial, const float* stats, int splits,
                                               int lane) {
  float top = -INFINITY_F, sum = 0.0f;
  if (lane < splits)
    asm volatile("ld.global.cg.v2.f32 {%0,%1}, [%2];"
                 : "=f"(top), "=f"(sum)
                 : "l"(stats + lane * 2 * QUERIES)
                 : "memory");
  const float by = exp2_fast(top - warp_max(top));
  const float last = 1.0f / warp_sum(sum * by);
  for (int d = 4 * lane; d < HEAD_DIM + 4 * lane; d += 4 * WARP) {
    float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 16
    for (int split = 0; split < splits; split++) {
      const float weight = __shfl_sync(0xffffffffu, by, split);
      if (d < HEAD_DIM) add_scaled(total, load_from_l2(partial + (i64)split * QUERIES * HEAD_DIM + d), weight);
    }
    total.x *= last, total.y *= last, total.z *= last, total.w *= last;
    if (d < HEAD_DIM) *(float4*)(out + d) = total;
  }
}

// 32 tokens of the cache, on the way to the tensor cores.
struct Staged {
  KeyPair keys[2];
  ValueTile values[DIM_TILES];

  __device__ __forceinline__ void load_keys(const u16* page, int slot, int lane) {
#pragma unroll
    for (int i = 0; i < 2; i++) keys[i].load<false>(page, slot, i, lane);
  }
  __device__ __forceinline__ void load_values(const u16* page, int slot, int lane) {
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) values[i].load<false>(page, slot, i, lane);
  }
};

extern "C" __global__ void __launch_bounds__(WARPS * WARP, 1)
attention_decode(const __grid_constant__ AttentionDecodeArguments a) {
  let_next_start();
  __shared__ __align__(16) Shared s;
  const int split = blockIdx.x, row = blockIdx.z;
  const int ratio = a.q_heads / a.kv_heads, groups = (ratio + QUERIES - 1) / QUERIES;
  Place p;
  p.lane = threadIdx.x % WARP, p.warp = threadIdx.x / WARP;
  p.kv_head = blockIdx.y / groups;
  const int first = blockIdx.y % groups * QUERIES;
  p.first_head = p.kv_head * ratio + first;
  p.heads = min(ratio - first, QUERIES);
  if (!a.early) wait_for_previous();

  const int position = a.positions[row], limit = position < 0 ? 0 : a.context_lengths[row];
  const int* pages = a.page_tables + (i64)row * a.max_pages;
  const int steps = (limit + SPLIT_TOKENS * MAX_SPLITS - 1) / (SPLIT_TOKENS * MAX_SPLITS);
  const int split_tokens = SPLIT_TOKENS * max(1, steps);
  const int splits = (limit + split_tokens - 1) / split_tokens, end = min(limit, (split + 1) * split_tokens);
  int base = split * split_tokens + p.warp * STEP;
  i64 offset = base < end ? page_offset(pages[base / PAGE_SIZE], p.kv_head, a.kv_heads) : 0;
  Staged staged;
  if (STAGED && base < end) {
    staged.load_keys(a.keys + offset, base % PAGE_SIZE, p.lane);
    staged.load_values(a.values + offset, base % PAGE_SIZE, p.lane);
  }
  Rotation rotation;
  rotation.set(a.turns, position, p.lane);
  if (a.early) wait_for_previous();

  float* out = a.out + ((i64)row * a.q_heads + p.first_head) * HEAD_DIM;
  if (split >= splits) {
    if (position < 0 && split == 0)
      for (int d = threadIdx.x; d < p.heads * HEAD_DIM; d += WARPS * WARP) out[d] = 0.0f;
    return;
  }
  const float* qkv = a.qkv + (i64)row * (a.q_heads + 2 * a.kv_heads) * HEAD_DIM;
  set_queries(s, a, qkv, rotation, p);
  if (split == splits - 1) append(s, a, qkv, rotation, p, pages[position / PAGE_SIZE], position % PAGE_SIZE);
  __syncthreads();
  Queries q;
  get_queries(q, s, p.lane);
  Progress progress;
  progress.clear();
  while (base < end) {
    const int next = base + SPLIT_TOKENS, slot = base % PAGE_SIZE, next_slot = next % PAGE_SIZE;
    const i64 next_offset = next < end ? page_offset(pages[next / PAGE_SIZE], p.kv_head, a.kv_heads) : 0;
    const int count = position - base;  // tokens of the step before the row's own
    float scores[2][4];
    u32 weights[KEY_TILES];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (!STAGED) staged.keys[i].load<false>(a.keys + offset, slot, i, p.lane);
      if (count < STEP) staged.keys[i].insert(s.key, count, i, p.lane);
      score(scores[i], staged.keys[i], q);
    }
    if (STAGED && next < end) staged.load_keys(a.keys + next_offset, next_slot, p.lane);
    if (count < STEP) mask(scores, count + 1, count + 1, p.lane);
    soften(weights, scores, progress);
    ValueEnd<true> end_of_values;
    if (count < STEP) end_of_values.set(count, p.lane);
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) {
      if (!STAGED) staged.values[i].load<false>(a.values + offset, slot, i, p.lane);
      if (count < STEP) end_of_values.apply(staged.values[i], s.value, i, p.lane);
      add_values(progress.output[i], staged.values[i], weights);
    }
    if (STAGED && next < end) staged.load_values(a.values + next_offset, next_slot, p.lane);
    base = next, offset = next_offset;
  }
  progress.finish();
  __syncthreads();
  share(s, progress, p);
  __syncthreads();

  const i64 place = (i64)row * gridDim.y + blockIdx.y;
  float* partials = a.partials + place * MAX_SPLITS * QUERIES * HEAD_DIM;
  float* stats = a.partials + ((i64)a.rows * gridDim.y * HEAD_DIM + place * 2) * MAX_SPLITS * QUERIES;
  for (int h = p.warp; h < QUERIES; h += WARPS) {
    float* partial = partials + (split * QUERIES + h) * HEAD_DIM;
    if (splits > 1) combine_warps(s, 0, partial, stats + (split * QUERIES + h) * 2, h, p.lane);
    else if (h < p.heads) combine_warps(s, out + h * HEAD_DIM, 0, 0, h, p.lane);
  }
  if (splits == 1) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) s.arrived = atomicAdd(a.counters + place, 1u);
  __syncthreads();
  if (s.arrived != splits - 1) return;
  __threadfence();
  if (threadIdx.x == 0) a.counters[place] = 0;
  for (int h = p.warp; h < p.heads; h += WARPS)
    combine_splits(out + h * HEAD_DIM, partials + h * HEAD_DIM, stats + h * 2, splits, p.lane);
}
