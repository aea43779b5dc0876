// The input of the matrix-vector kernel on its way from memory to two int8 digits in shared memory.
#pragma once
#include "matvec_plan.cuh"

__device__ __forceinline__ float4 load_fresh(const float* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
// Asks the L2 cache for the 128 bytes that an address lies in.
__device__ __forceinline__ void prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
// The largest of values that are not negative: their bits are ordered like integers.
__device__ __forceinline__ float warp_max_positive(float v) {
#if __CUDA_ARCH__ >= 800
  u32 largest;
  asm("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(__float_as_uint(v)));
  return __uint_as_float(largest);
#else
  return warp_max(v);
#endif
}

// Added to a float of less than 2^22, leaves the nearest integer in the low bits.
#define ROUNDER 12582912.0f
#define ROUNDER_BITS 0x4b400000

// Four columns of a lane as digits: byte i of each word belongs to column i. Returns their sum.
__device__ __forceinline__ int pack_digits(float4 v, float inverse, u32& high, u32& low) {
  const int q0 = __float_as_int(__fmaf_rn(v.x, inverse, ROUNDER));
  const int q1 = __float_as_int(__fmaf_rn(v.y, inverse, ROUNDER));
  const int q2 = __float_as_int(__fmaf_rn(v.z, inverse, ROUNDER));
  const int q3 = __float_as_int(__fmaf_rn(v.w, inverse, ROUNDER));
  // The low digit is the low byte as it is; the high one is the next byte once the low one is rounded away.
  low = __byte_perm(__byte_perm(q0, q1, 0x0040), __byte_perm(q2, q3, 0x0040), 0x5410);
  high = __byte_perm(__byte_perm(q0 + 128, q1 + 128, 0x0051), __byte_perm(q2 + 128, q3 + 128, 0x0051), 0x5410);
  return (int)((u32)q0 + (u32)q1 + (u32)q2 + (u32)q3 - 4u * ROUNDER_BITS);
}

// Where a lane writes x: its columns 4 lane.. of a tile belong to operand lane t = lane / 8.
__device__ __forceinline__ int lane_place(int lane) {
  return lane / 4 % 2 * TOKENS * 128 + lane / 8 * 16 + lane % 4 * 4;
}

__device__ __forceinline__ void write_x(const Shared& shared, int tile, int token, float4 v, int lane) {
  const float largest =
      warp_max_positive(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  // So near that the largest value still rounds to LARGEST_VALUE.
  const float inverse = largest > 1e-30f ? LARGEST_VALUE * reciprocal(largest) : 0.0f;
  const float scale = largest * (1.0f / LARGEST_VALUE);
  u32 high, low;
  int sum = pack_digits(v, inverse, high, low);
  const u32 to = shared.digits + tile * X_TILE_BYTES + token * 128 + lane_place(lane);
  write_shared(to, high);
  write_shared(to + 64, low);
  if (lane == 0) write_shared(shared.scales + (tile * TOKENS + token) * 4, scale * Weights::CODE_UNIT);
  if (MINIMA) {
#pragma unroll
    for (int step = 1; step < GROUP / 4; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane % (GROUP / 4) == 0)
      write_shared(shared.sums + ((tile * TOKENS + token) * GROUPS + lane / (GROUP / 4)) * 4, (float)sum * scale);
  }
}

// A warp's part of x on its way from memory to shared memory: tiles warp, warp + WARPS, ... of a window.
struct Input {
  float4 x[ROUND_TILES][ROUND_TOKENS], norm[ROUND_TILES];

  __device__ __forceinline__ bool has(const MatvecArguments& a, int first, int count, int tile, int i, int lane) const {
    return tile + i * WARPS < count && (first + tile + i * WARPS) * TILE_COLUMNS + lane * 4 < a.columns;
  }
  __device__ __forceinline__ void load_norm(const MatvecArguments& a, int first, int count, int tile, int lane) {
    const float* from = a.norm + (first + tile) * TILE_COLUMNS + lane * 4;
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++)
      norm[i] = has(a, first, count, tile, i, lane) ? *(const float4*)(from + i * WARPS * TILE_COLUMNS)
                                                    : make_float4(0, 0, 0, 0);
  }
  // Where this lane's part begins.
  static __device__ __forceinline__ const float* part(const MatvecArguments& a, int first, int tile, int token,
                                                      int lane) {
    return a.x + (token * a.columns + (first + tile) * TILE_COLUMNS + lane * 4);
  }
  __device__ __forceinline__ void load(const MatvecArguments& a, const float* from, int first, int count, int tile,
                                       int token, int lane) {
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++)
#pragma unroll
      for (int j = 0; j < ROUND_TOKENS; j++)
        x[i][j] = has(a, first, count, tile, i, lane) && token + j < a.tokens
                      ? load_fresh(from + i * WARPS * TILE_COLUMNS + j * a.columns)
                      : make_float4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void write(const MatvecArguments& a, const Shared& shared, int first, int count, int tile,
                                        int token, int lane, bool sums_squares) const {
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++) {
      if (tile + i * WARPS >= count) break;
#pragma unroll
      for (int j = 0; j < ROUND_TOKENS; j++) {
        float4 v = x[i][j];
        float squares = v.w * v.w;
        if (NORM) {
          squares = __fmaf_rn(v.x, v.x, __fmaf_rn(v.y, v.y, __fmaf_rn(v.z, v.z, squares)));
          v.x *= norm[i].x, v.y *= norm[i].y, v.z *= norm[i].z, v.w *= norm[i].w;
        }
        write_x(shared, tile + i * WARPS, token + j, v, lane);
        if (NORM && sums_squares) {
          squares = warp_sum(squares);
          if (lane == 0)
            write_shared(shared.squares + ((token + j) * ((a.tiles + 3) & ~3) + first + tile + i * WARPS) * 4, squares);
        }
      }
    }
  }
};

// Quantizes the rest of a window, of which `input` has loaded the first round. RMSNorm scales a token as a whole: its
// squares are summed here, and 1 / rms multiplies the result. Once is enough: later they may be being read.
__device__ __forceinline__ void quantize(const MatvecArguments& a, const Shared& shared, Input& input, int first,
                                         int count, int warp, int lane, bool sums_squares) {
  int tile = warp, token = 0;
  for (;;) {
    input.write(a, shared, first, count, tile, token, lane, sums_squares);
    token += ROUND_TOKENS;
    if (TOKENS <= ROUND_TOKENS || token >= a.tokens) token = 0, tile += WARPS * ROUND_TILES;
    if (tile >= count) return;
    if (NORM && token == 0) input.load_norm(a, first, count, tile, lane);
    input.load(a, Input::part(a, first, tile, token, lane), first, count, tile, token, lane);
  }
}
