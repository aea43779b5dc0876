// How a row's context is shared among blocks, and how what they found is combined: for attention_decode.cu.
#pragma once
#include "attention.cuh"

#define WARPS 4                   // half of an SM's registers: the previous kernel's blocks and these run side by side
#define THREADS (WARPS * WARP)
#define QUERIES 8
#define TURN (WARPS * STEP)       // tokens that a block takes at a time
#ifndef LEAST
#define LEAST TURN                // tokens of a split, unless it is the only one
#endif
#define LANE_SPLITS 3             // splits that a lane weighs
#define MAX_SPLITS (LANE_SPLITS * WARP)
#define SEGMENT 4                 // splits that are summed first
#define VALUES (QUERIES * HEAD_DIM)
#define PARTIAL (VALUES + 2 * QUERIES)  // numbers of a split: values; largest scores and sums, which lie by query
// Items of a thread: a number of the result and a segment. Most are there where 2 splits share the numbers.
#define ITEMS ((VALUES / 2 + THREADS - 1) / THREADS)
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
  u64* partials;               // (rows, grid y, most, PARTIAL): float32, and above it the count of the launch
  u32* counters;               // (rows, grid y): launches so far whose row was split
  int rows, q_heads, kv_heads, max_pages, most, early, exchange;
  float eps, scale;
};

struct Shared {
  union {
    float output[WARPS][QUERIES][OUTPUT_STRIDE];
    float segments[ITEMS * THREADS];  // once the output has gone to the other splits
  };
  u16 high[QUERIES][QUERY_STRIDE], low[QUERIES][QUERY_STRIDE];  // queries
  u16 key[HEAD_DIM], value[HEAD_DIM];
  float top[WARPS][QUERIES], sum[WARPS][QUERIES];
  float weights[QUERIES][MAX_SPLITS], last[QUERIES];  // of the splits, and one over the sum
};

struct Place {
  int kv_head, first_head, heads;  // of this block: up to 8 query heads of one KV head
  int lane, warp;
  bool first_of_kv_head;

  __device__ __forceinline__ void set(const AttentionDecodeArguments& a) {
    const u32 ratio = (u32)a.q_heads / (u32)a.kv_heads, groups = (ratio + QUERIES - 1) / QUERIES;
    const u32 first = blockIdx.y % groups * QUERIES;
    lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    kv_head = blockIdx.y / groups;
    first_head = kv_head * ratio + first;
    first_of_kv_head = first == 0;
    heads = min((int)(ratio - first), QUERIES);
  }
};

// How a row's context is split: a function of its length, so that a row does not depend on its neighbours.
struct Splits {
  int position, limit, tokens, count;

  __device__ __forceinline__ void set(const AttentionDecodeArguments& a, int row) {
    position = a.positions[row], limit = position < 0 ? 0 : a.context_lengths[row];
    tokens = max(LEAST, (u32)(limit + a.most * PAGE_SIZE - 1) / (u32)(a.most * PAGE_SIZE) * PAGE_SIZE);
    count = (u32)(limit + tokens - 1) / (u32)tokens;
  }
};

// Numbers between blocks carry the count of the launch: whoever reads them sees whether they are there yet, without a
// fence or a counter in between.
__device__ __forceinline__ void store_tagged(u64* p, float x, u32 tag) {
  const u64 both = (u64)tag << 32 | (u32)__float_as_int(x);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(both) : "memory");
}
__device__ __forceinline__ u64 load_tagged(const u64* p) {
  u64 both;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(p) : "memory");
  return both;
}
__device__ __forceinline__ void load_tagged(u64& first, u64& second, const u64* p) {  // 16-byte aligned
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0,%1}, [%2];" : "=l"(first), "=l"(second) : "l"(p) : "memory");
}
__device__ __forceinline__ bool is_there(u64 both, u32 tag) { return (u32)(both >> 32) == tag; }
__device__ __forceinline__ float number_of(u64 both) { return __int_as_float((int)(u32)both); }

// What the splits of a row, eight query heads of a KV head, leave to each other: the values of each split, then for
// each query the largest score and the sum of all splits side by side, since whoever wants one wants all.
struct Partials {
  u64* values;
  int most;

  __device__ __forceinline__ void set(const AttentionDecodeArguments& a, i64 place) {
    most = a.most, values = a.partials + place * most * PARTIAL;
  }
  __device__ __forceinline__ u64* of_split(int split) const { return values + (i64)split * VALUES; }
  __device__ __forceinline__ u64* stats(int h, int split) const {
    return values + (i64)most * VALUES + (h * most + split) * 2;
  }
};

// Combines the warps' findings of two queries, in their order: into the result where there are no other splits, else
// into what this split leaves to the others. Both at once, for nothing is loaded behind a store.
struct WarpsCombined {
  float top[QUERIES / WARPS], sum[QUERIES / WARPS], values[QUERIES / WARPS][(HEAD_DIM + WARP - 1) / WARP];

  __device__ __forceinline__ void set(const Shared& s, const Place& p) {
#pragma unroll
    for (int n = 0; n < QUERIES / WARPS; n++) {
      const int h = p.warp + WARPS * n;
      float by[WARPS];
      top[n] = -INFINITY_F, sum[n] = 0.0f;
#pragma unroll
      for (int w = 0; w < WARPS; w++) top[n] = fmaxf(top[n], s.top[w][h]);
#pragma unroll
      for (int w = 0; w < WARPS; w++) {
        by[w] = exp2_fast(s.top[w][h] - top[n]);
        sum[n] += s.sum[w][h] * by[w];
      }
#pragma unroll
      for (int d = p.lane; d < HEAD_DIM; d += WARP) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) total = fmaf(s.output[w][h][d], by[w], total);
        values[n][d / WARP] = total;
      }
    }
  }
  __device__ __forceinline__ void write(float* out, const Place& p) const {
#pragma unroll
    for (int n = 0; n < QUERIES / WARPS; n++) {
      const int h = p.warp + WARPS * n;
      if (h >= p.heads) break;
      const float last = reciprocal(sum[n]);
#pragma unroll
      for (int d = p.lane; d < HEAD_DIM; d += WARP) out[h * HEAD_DIM + d] = values[n][d / WARP] * last;
    }
  }
  __device__ __forceinline__ void leave(const Partials& partials, int split, u32 tag, const Place& p) const {
#pragma unroll
    for (int n = 0; n < QUERIES / WARPS; n++) {
      const int h = p.warp + WARPS * n;
      if (h >= p.heads) break;
      if (p.lane < 2) store_tagged(partials.stats(h, split) + p.lane, p.lane ? sum[n] : top[n], tag);
#pragma unroll
      for (int d = p.lane; d < HEAD_DIM; d += WARP)
        store_tagged(partials.of_split(split) + h * HEAD_DIM + d, values[n][d / WARP], tag);
    }
  }
};

// The largest scores and sums of all splits of a query: a lane has splits lane, lane + 32, ...
struct SplitStats {
  u64 top[LANE_SPLITS], sum[LANE_SPLITS];

  __device__ __forceinline__ void load(const Partials& partials, int splits, int h, int lane) {
#pragma unroll
    for (int i = 0; i < LANE_SPLITS; i++)
      if (lane + WARP * i < splits) load_tagged(top[i], sum[i], partials.stats(h, lane + WARP * i));
  }
  __device__ __forceinline__ bool is_complete(u32 tag, int splits, int lane) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < LANE_SPLITS; i++)
      if (lane + WARP * i < splits) all &= is_there(top[i], tag) && is_there(sum[i], tag);
    return all;
  }
  // The weights of the splits, and one over the sum of all.
  __device__ __forceinline__ void weigh(Shared& s, int splits, int h, int lane) const {
    float largest = -INFINITY_F, total = 0.0f;
#pragma unroll
    for (int i = 0; i < LANE_SPLITS; i++)
      if (lane + WARP * i < splits) largest = fmaxf(largest, number_of(top[i]));
    largest = warp_max(largest);
#pragma unroll
    for (int i = 0; i < LANE_SPLITS; i++)
      if (lane + WARP * i < splits) {
        const float by = exp2_fast(number_of(top[i]) - largest);
        total = fmaf(number_of(sum[i]), by, total);
        s.weights[h][lane + WARP * i] = by;
      } else s.weights[h][lane + WARP * i] = 0.0f;
    total = warp_sum(total);
    if (lane == 0) s.last[h] = reciprocal(total);
  }
};

// A split's share of the result, numbers first to first + size - 1: an item is one of them and a segment of splits, and
// the items' loads are all under way at once.
struct Share {
  int splits, first, size, segments;
  u64 loaded[ITEMS][SEGMENT];

  __device__ __forceinline__ void set(int split, int count, int numbers) {
    splits = count;
    const int most = (u32)(numbers + splits - 1) / (u32)splits;
    first = split * most, size = min(most, numbers - first);
    segments = (splits + SEGMENT - 1) / SEGMENT;
  }
  __device__ __forceinline__ void load(const Partials& partials, u32 tag) {
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
      const u32 item = threadIdx.x + k * THREADS, segment = item / (u32)size;
      const u64* from = partials.of_split(segment * SEGMENT) + first + item % (u32)size;
#pragma unroll
      for (int j = 0; j < SEGMENT; j++) {
        loaded[k][j] = (u64)tag << 32;  // there, and zero
        if ((int)segment * SEGMENT + j < splits) loaded[k][j] = load_tagged(from + j * VALUES);
      }
    }
  }
  __device__ __forceinline__ bool is_complete(u32 tag) const {
    bool all = true;
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
#pragma unroll
      for (int j = 0; j < SEGMENT; j++) all &= is_there(loaded[k][j], tag);
    return all;
  }
  // Segments that are not the only one are summed by `add_segments`.
  __device__ __forceinline__ void add(Shared& s, float* out) const {
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
      const u32 item = threadIdx.x + k * THREADS, segment = item / (u32)size;
      const int i = first + item % (u32)size, h = i / HEAD_DIM;
      if ((int)segment >= segments) continue;
      float total = 0.0f;
#pragma unroll
      for (int j = 0; j < SEGMENT; j++)  // weights beyond the last split are zero
        total = fmaf(number_of(loaded[k][j]), s.weights[h][segment * SEGMENT + j], total);
      if (segments == 1) out[i] = total * s.last[h];
      else s.segments[item] = total;
    }
  }
};

__device__ __forceinline__ void add_segments(const Shared& s, float* out, const Share& share) {
#pragma unroll 1
  for (int i = threadIdx.x; i < share.size; i += THREADS) {
    float total = 0.0f;
#pragma unroll
    for (int segment = 0; segment < MAX_SPLITS / SEGMENT; segment++)
      if (segment < share.segments) total += s.segments[segment * share.size + i];
    out[share.first + i] = total * s.last[(share.first + i) / HEAD_DIM];
  }
}

// Combines this split's share of the result over all splits, in their order, as they come in.
__device__ __forceinline__ void combine_share(Shared& s, float* out, const Partials& partials, u32 tag, int split,
                                              int splits, const Place& p) {
  Share share;
  share.set(split, splits, p.heads * HEAD_DIM);
  if (share.size <= 0) return;
  // Each warp weighs the splits for one query: no share touches more than WARPS, being at most half of all numbers.
  const int h = share.first / HEAD_DIM + p.warp;
  const bool weighs = h <= (share.first + share.size - 1) / HEAD_DIM;
  SplitStats stats;
  bool all;
  do {
    share.load(partials, tag);
    if (weighs) stats.load(partials, splits, h, p.lane);
    all = share.is_complete(tag) && (!weighs || stats.is_complete(tag, splits, p.lane));
  } while (!all);
  __syncwarp();
  if (weighs) stats.weigh(s, splits, h, p.lane);
  __syncthreads();
  share.add(s, out);
  if (share.segments == 1) return;
  __syncthreads();
  add_segments(s, out, share);
}
