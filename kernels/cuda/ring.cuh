// A warp's private queue of pieces of memory in shared memory, filled ahead by asynchronous copies.
//
// Pieces come out in the order in which they were started. A piece is read into registers as soon as it is taken; then
// the next one comes into its slot while it is worked on.
#pragma once
#include "device.cuh"

// 16 bytes from global to shared memory where `wanted`, without a branch.
__device__ __forceinline__ void copy_16_async_if(bool wanted, u32 shared, const u8* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.u32 wanted, %2, 0;\n"
      " @wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n}" ::"r"(shared),
      "l"(global), "r"((u32)wanted)
      : "memory");
#else
  if (wanted) {
    const uint4 v = *(const uint4*)global;
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(shared), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
  }
#endif
}

template <int bytes, int stages>
struct Ring {
  static constexpr int RING_BYTES = bytes * stages;

  u32 first, slot;  // addresses of the slots: of all, of the one whose turn it is

  __device__ __forceinline__ void open(u32 ring) { first = ring, slot = ring; }

  // Waits for the oldest piece.
  __device__ __forceinline__ u32 take() const {
    wait_for_copies<stages - 1>();
    __syncwarp();
    return slot;
  }

  // Every lane has read the piece that was taken last: starts the copy of another one into its place.
  //   lane_part: 16 lane bytes behind its start
  //   chunks: how many runs of 16 bytes it has, less lane; nothing is copied of a piece that has none
  __device__ __forceinline__ void refill(const u8* lane_part, int chunks, int lane) {
    __syncwarp();
    const u32 to = slot + lane * 16;
#pragma unroll
    for (int i = 0; i < bytes / 16; i += WARP) copy_16_async_if(i < chunks, to + i * 16, lane_part + i * 16);
    end_copy_group();
    if (stages > 1) slot = slot == first + RING_BYTES - bytes ? first : slot + bytes;
  }
};
