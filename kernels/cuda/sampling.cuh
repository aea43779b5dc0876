// What sampling.cu is made of: order-preserving keys, Philox, sums of a block in a fixed order, and a barrier between
// the blocks of one row.
#pragma once
#include "device.cuh"

#define THREADS 512
#define WARPS (THREADS / WARP)

// Written instead of a token; kernels/launch/sampling.py has the same numbers.
#define LOGIT_IS_NAN -1
#define LOGIT_IS_INFINITE -2
#define ALL_MINUS_INFINITE -3
#define ROW_IS_IDLE -4

// Larger floats have larger keys. Minus zero must have become zero.
__device__ __forceinline__ u32 key_of(float v) {
  const u32 bits = __float_as_uint(v);
  return v != v ? 0xffffffffu : bits ^ ((u32)((int)bits >> 31) | 0x80000000u);
}
__device__ __forceinline__ float value_of(u32 key) {
  return __uint_as_float(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

// numpy's Generator(Philox(key=seed, counter=index)).random(): the counter goes up before the first block is made, and
// of its four numbers the first is taken, 53 bits of it.
__device__ __forceinline__ double uniform(u64 seed, u64 index) {
  u64 c0 = index + 1, c1 = index == 0xffffffffffffffffull, c2 = 0, c3 = 0, k0 = seed, k1 = 0;
#pragma unroll 1
  for (int round = 0; round < 10; round++) {
    const u64 m0 = 0xD2E7470EE14C6C93ull, m1 = 0xCA5A826395121157ull;
    const u64 high0 = __umul64hi(m0, c0), low0 = m0 * c0, high1 = __umul64hi(m1, c2), low1 = m1 * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B97F4A7C15ull;
    k1 += 0xBB67AE8584CAA73Bull;
  }
  return (double)(c0 >> 11) * (1.0 / 9007199254740992.0);
}

// The sum over the block, the same bits in every thread. `room` may be used again after the next barrier of the block.
template <typename number>
__device__ __forceinline__ number block_sum(number v, number* room) {
#pragma unroll
  for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = v;
  __syncthreads();
  v = room[threadIdx.x % WARPS];
#pragma unroll
  for (int step = WARPS / 2; step; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}

__device__ __forceinline__ u64 block_max(u64 v, u64* room) {
#pragma unroll
  for (int step = 16; step; step >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, step));
  if (threadIdx.x % WARP == 0) room[threadIdx.x / WARP] = v;
  __syncthreads();
  v = room[threadIdx.x % WARPS];
#pragma unroll
  for (int step = WARPS / 2; step; step >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

// Sums over this and all lower threads; `total` is the sum over the block.
template <typename number>
__device__ __forceinline__ number block_scan(number v, number* room, number& total) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
#pragma unroll
  for (int step = 1; step < WARP; step <<= 1) {
    const number below = __shfl_up_sync(0xffffffffu, v, step);
    if (lane >= step) v += below;
  }
  __syncthreads();  // room may still be read
  if (lane == WARP - 1) room[warp] = v;
  __syncthreads();
  number of_warp = room[lane % WARPS];
#pragma unroll
  for (int step = 1; step < WARPS; step <<= 1) {
    const number below = __shfl_up_sync(0xffffffffu, of_warp, step, WARPS);
    if (lane % WARPS >= step) of_warp += below;
  }
  total = __shfl_sync(0xffffffffu, of_warp, WARPS - 1);
  const number before = __shfl_sync(0xffffffffu, of_warp, warp ? warp - 1 : 0);
  return warp ? v + before : v;
}

// What this thread, and its block before the last barrier, wrote comes before the addition; what other threads wrote
// before theirs comes before what this thread reads next.
__device__ __forceinline__ u32 add_in_order(u32* p, u32 amount) {
  u32 before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;" : "=r"(before) : "l"(p), "r"(amount) : "memory");
  return before;
}
__device__ __forceinline__ u32 load_in_order(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
// A load that stays where it is written.
__device__ __forceinline__ float load_early(const float* p) {
  float v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}

// Waits until `target` arrivals were counted, one for each block. All blocks of the grid must run at once: the launcher
// sees to it that they fit, and the kernel after this one starts no block before all of these have started.
__device__ __forceinline__ void wait_for_blocks(u32* arrivals, u32 target) {
  __syncthreads();
  if (threadIdx.x == 0 && add_in_order(arrivals, 1) + 1 < target) {
    while (load_in_order(arrivals) < target) {
    }
  }
  __syncthreads();
}
