// Attention on tensor cores straight from the pages of the KV cache, and RoPE. Takes -DHEAD_DIM, a multiple of 16.
//
// A page holds 64 tokens: keys float16 [token][HEAD_DIM], values transposed, float16 [HEAD_DIM][token]. A warp takes 32
// tokens at a time and up to 8 queries a column tile; both products are mma_f16, with the cache as operand a:
//   scores (tokens x queries) = K Q^T, then output (dims x queries) += V^T P^T.
// Operand a wants rows g and g + 8 of lane 4g + t, and it does not matter which dims (or tokens) as long as operand b
// has the same, so every lane reads runs of 16 bytes, and shared memory lies in between only where warps share them:
//   keys    row g of tile j is token 8 (g / 2) + 2j + g % 2 of the 32; the lane's dims are 32 d + 8t .. 8t + 7
//   values  rows 16 i + g and 16 i + g + 8 are dims; the lane's tokens are 8t .. 8t + 7
// The scores of tile j, transposed by movmatrix, are then tokens 8t + 2j and 8t + 2j + 1 of query g: operand b of step
// j / 2.
//
// A query is two float16 numbers, rounded and remainder, so it keeps 22 bits; scores and sums are float32; weights are
// float16 in 0..1. Numbers that the softmax takes are in units of log2.
#pragma once
#include "device.cuh"

#define STEP 32
#define KEY_TILES 4                 // of 8 tokens
#define KEY_RUNS (HEAD_DIM / 32)    // runs of 8 dims a lane
#define KEY_TAIL (HEAD_DIM % 32)    // 16: and a run of 4 dims
#define DIM_TILES (HEAD_DIM / 16)
#define PAIRS (HEAD_DIM / 2)
#define LANE_PAIRS ((PAIRS + WARP - 1) / WARP)
#define LOG2_E 1.44269504088896340736f

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ u32 transpose_8x8(u32 x) {
  u32 y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}

// Read by one warp only: does not stay in L1.
__device__ __forceinline__ uint4 load_cache_16(const u16* p) {
  uint4 v;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// Token of row g of key tile j.
__device__ __forceinline__ int token_of(int j, int g) { return 8 * (g / 2) + 2 * j + g % 2; }

// Key tiles 2i and 2i + 1.
struct KeyPair {
  uint4 runs[2][KEY_RUNS];
  uint2 tail[2];

  // `page`: the keys of a page and KV head; `slot`: 0 or 32.
  __device__ __forceinline__ void load(const u16* page, int slot, int i, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const u16* key = page + (slot + token_of(2 * i + j, g)) * HEAD_DIM;
#pragma unroll
      for (int d = 0; d < KEY_RUNS; d++) runs[j][d] = load_cache_16(key + 32 * d + 8 * t);
      if (KEY_TAIL) tail[j] = *(const uint2*)(key + 32 * KEY_RUNS + 4 * t);
    }
  }
  // Of 32 keys in shared memory, `stride` numbers from one to the next.
  __device__ __forceinline__ void read(const u16* keys, int stride, int i, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const u16* key = keys + token_of(2 * i + j, g) * stride;
#pragma unroll
      for (int d = 0; d < KEY_RUNS; d++) runs[j][d] = *(const uint4*)(key + 32 * d + 8 * t);
      if (KEY_TAIL) tail[j] = *(const uint2*)(key + 32 * KEY_RUNS + 4 * t);
    }
  }
  // Puts the key of token `at` of the 32 in place, where it belongs to these tiles.
  __device__ __forceinline__ void insert(const u16* key, int at, int i, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int j = 0; j < 2; j++)
      if (token_of(2 * i + j, g) == at) {
#pragma unroll
        for (int d = 0; d < KEY_RUNS; d++) runs[j][d] = *(const uint4*)(key + 32 * d + 8 * t);
        if (KEY_TAIL) tail[j] = *(const uint2*)(key + 32 * KEY_RUNS + 4 * t);
      }
  }
};

// Dims 16 i .. 16 i + 15 of the values of 32 tokens.
struct ValueTile {
  uint4 rows[2];

  __device__ __forceinline__ void load(const u16* page, int slot, int i, int lane) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; half++)
      rows[half] = load_cache_16(page + (16 * i + 8 * half + g) * PAGE_SIZE + slot + 8 * t);
  }
  // Of 32 tokens in shared memory, [HEAD_DIM][stride].
  __device__ __forceinline__ void read(const u16* values, int stride, int i, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++)
      rows[half] = *(const uint4*)(values + (16 * i + 8 * half + lane / 4) * stride + 8 * (lane % 4));
  }
};

// Zeros in place of the values of tokens at and beyond `count` of the 32, where the cache may hold NaN, and, if INSERT,
// the value of token `count`.
template <bool INSERT>
struct ValueEnd {
  u32 keep[4], shift[4];

  __device__ __forceinline__ void set(int count, int lane) {
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const int left = count - (8 * (lane % 4) + 2 * w);
      keep[w] = left >= 2 ? 0xffffffffu : left == 1 ? 0xffffu : 0u;
      shift[w] = left == 0 ? 1u : left == 1 ? 0x10000u : 0u;
    }
  }
  __device__ __forceinline__ void apply(ValueTile& tile, const u16* value, int i, int lane) const {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      u32* word = (u32*)&tile.rows[half];
      const u32 inserted = INSERT ? value[16 * i + 8 * half + lane / 4] : 0u;
#pragma unroll
      for (int w = 0; w < 4; w++) word[w] = (word[w] & keep[w]) | (INSERT ? inserted * shift[w] : 0u);
    }
  }
};

// 8 queries, each multiplied by scale * log2(e).
struct Queries {
  uint4 high[KEY_RUNS], low[KEY_RUNS];
  uint2 high_tail, low_tail;
};

__device__ __forceinline__ void split_pair(float x, float y, u32& high, u32& low) {
  const u16 hx = float_to_half(x), hy = float_to_half(y);
  high = (u32)hx | (u32)hy << 16;
  low = pack_halves(x - half_to_float(hx), y - half_to_float(hy));
}

// The outcome of a warp over the tokens so far for 8 queries; lane 4g + t has queries 2t and 2t + 1.
struct Progress {
  float top[2], sum[2];       // the sum is the lane's own share
  float output[DIM_TILES][4]; // [i]: dim 16 i + g of both queries, dim 16 i + g + 8 of both

  __device__ __forceinline__ void clear() {
    top[0] = top[1] = -INFINITY_F;
    sum[0] = sum[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++)
#pragma unroll
      for (int c = 0; c < 4; c++) output[i][c] = 0.0f;
  }
  // After the last step: the sum over all lanes.
  __device__ __forceinline__ void finish() {
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
      for (int lanes = 4; lanes < WARP; lanes *= 2) sum[c] += __shfl_xor_sync(0xffffffffu, sum[c], lanes);
  }
};

#define TWO_STEPS(c, upper, lower, b)                                        \
  {                                                                          \
    const u32 first[4] = {upper.x, lower.x, upper.y, lower.y};               \
    const u32 second[4] = {upper.z, lower.z, upper.w, lower.w};              \
    mma_f16(c, first, b.x, b.y);                                             \
    mma_f16(c, second, b.z, b.w);                                            \
  }

// scores: token row g of key tile 2i with queries 2t, 2t + 1; the same of tile 2i + 1.
__device__ __forceinline__ void score(float (&scores)[4], const KeyPair& keys, const Queries& q) {
  float remainder[4] = {0.0f, 0.0f, 0.0f, 0.0f};  // a chain of its own: half the latency
#pragma unroll
  for (int c = 0; c < 4; c++) scores[c] = 0.0f;
#pragma unroll
  for (int d = 0; d < KEY_RUNS; d++) {
    TWO_STEPS(remainder, keys.runs[0][d], keys.runs[1][d], q.low[d]);
    TWO_STEPS(scores, keys.runs[0][d], keys.runs[1][d], q.high[d]);
  }
  if (KEY_TAIL) {
    const u32 a[4] = {keys.tail[0].x, keys.tail[1].x, keys.tail[0].y, keys.tail[1].y};
    mma_f16(remainder, a, q.low_tail.x, q.low_tail.y);
    mma_f16(scores, a, q.high_tail.x, q.high_tail.y);
  }
#pragma unroll
  for (int c = 0; c < 4; c++) scores[c] += remainder[c];
}

// Takes tokens beyond the limits out: `limits` counts the tokens of the 32 that query 2t and 2t + 1 may see.
__device__ __forceinline__ void mask(float (&scores)[2][4], int limit0, int limit1, int lane) {
#pragma unroll
  for (int j = 0; j < KEY_TILES; j++) {
    const int token = token_of(j, lane / 4);
    if (token >= limit0) scores[j / 2][j % 2 * 2] = -INFINITY_F;
    if (token >= limit1) scores[j / 2][j % 2 * 2 + 1] = -INFINITY_F;
  }
}

// Scores to weights, as operand b of the product with the values: weights[j]: tokens 8t + 2j and the next of query g.
__device__ __forceinline__ void soften(u32 (&weights)[KEY_TILES], const float (&scores)[2][4], Progress& p) {
  float factor[2];
#pragma unroll
  for (int c = 0; c < 2; c++) {
    float top = fmaxf(fmaxf(scores[0][c], scores[0][c + 2]), fmaxf(scores[1][c], scores[1][c + 2]));
#pragma unroll
    for (int lanes = 4; lanes < WARP; lanes *= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lanes));
    top = fmaxf(top, p.top[c]);
    factor[c] = exp2_fast(p.top[c] - top);
    p.top[c] = top;
    p.sum[c] *= factor[c];
  }
#pragma unroll
  for (int j = 0; j < KEY_TILES; j++) {
    const u32 pair = pack_halves(exp2_fast(scores[j / 2][j % 2 * 2] - p.top[0]),
                                 exp2_fast(scores[j / 2][j % 2 * 2 + 1] - p.top[1]));
    p.sum[0] += half_to_float((u16)pair);
    p.sum[1] += half_to_float((u16)(pair >> 16));
    weights[j] = transpose_8x8(pair);
  }
#pragma unroll
  for (int i = 0; i < DIM_TILES; i++)
#pragma unroll
    for (int c = 0; c < 4; c++) p.output[i][c] *= factor[c % 2];
}

__device__ __forceinline__ void add_values(float (&output)[4], const ValueTile& values,
                                           const u32 (&weights)[KEY_TILES]) {
  const uint4 b = make_uint4(weights[0], weights[1], weights[2], weights[3]);
  TWO_STEPS(output, values.rows[0], values.rows[1], b);
}

// Issued where it stands: loads that are used later start together.
__device__ __forceinline__ float load_now(const float* p) {
  float v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}

// RoPE, half-split: dims p and p + HEAD_DIM / 2 are a pair; a lane has pairs lane, lane + 32, ... The angle of a pair
// is position * turns / 2^64 of a full turn, exact in integers at any position.
struct Rotation {
  float cosine[LANE_PAIRS], sine[LANE_PAIRS];

  __device__ __forceinline__ void set(const u64* turns, int position, int lane) {
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = lane + WARP * i;
      const u64 angle = pair < PAIRS ? turns[pair] * (u64)position : 0;
      sincospif((float)(int)(angle >> 32) * (1.0f / 2147483648.0f), &sine[i], &cosine[i]);
    }
  }
};

// The pairs of one head in a warp.
struct HeadPairs {
  float first[LANE_PAIRS], second[LANE_PAIRS];

  __device__ __forceinline__ void load(const float* head, int lane) {
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = lane + WARP * i;
      first[i] = pair < PAIRS ? load_now(head + pair) : 0.0f;
      second[i] = pair < PAIRS ? load_now(head + pair + PAIRS) : 0.0f;
    }
  }
  // RMSNorm over the head.
  __device__ __forceinline__ void norm(const float* weight, float eps, int lane) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) squares += first[i] * first[i] + second[i] * second[i];
    const float by = rsqrtf(warp_sum(squares) * (1.0f / HEAD_DIM) + eps);
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const int pair = lane + WARP * i;
      if (pair >= PAIRS) continue;
      first[i] *= by * weight[pair];
      second[i] *= by * weight[pair + PAIRS];
    }
  }
  __device__ __forceinline__ void rotate(const Rotation& r) {
#pragma unroll
    for (int i = 0; i < LANE_PAIRS; i++) {
      const float x = first[i], y = second[i];
      first[i] = x * r.cosine[i] - y * r.sine[i];
      second[i] = y * r.cosine[i] + x * r.sine[i];
    }
  }
};

// Where the keys of a page and KV head begin; its values begin at the same place of theirs.
__device__ __forceinline__ i64 page_offset(int page, int kv_head, int kv_heads) {
  return ((i64)page * kv_heads + kv_head) * (PAGE_SIZE * HEAD_DIM);
}
