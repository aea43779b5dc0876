// A warp's private queue of weight tiles in shared memory, filled ahead by asynchronous copies.
//
// Tiles come out in the order in which they were started. A slot is filled again one tile after it was read, so that
// one __syncwarp() a tile orders both: `stages` slots hold stages - 1 tiles ahead.
#pragma once
#include "device.cuh"

// 16 bytes from global to shared memory where `wanted`, without a branch.
__device__ __forceinline__ void copy_16_async_if(bool wanted, u8* shared, const u8* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{\n .reg .pred wanted;\n setp.ne.u32 wanted, %2, 0;\n"
      " @wanted cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n}" ::"r"(shared_address(shared)),
      "l"(global), "r"((u32)wanted)
      : "memory");
#else
  if (wanted) *(uint4*)shared = *(const uint4*)global;
#endif
}

template <int bytes, int stages>
struct TileRing {
  static constexpr int CHUNKS = bytes / 16;
  static constexpr int AHEAD = stages - 1;
  static constexpr int RING_BYTES = bytes * stages;

  u8* slots;
  int next, before;  // offsets: the tile that is given next, the one that was given last

  __device__ __forceinline__ void open(u8* ring) { slots = ring, next = 0, before = RING_BYTES - bytes; }

  // Starts the copy of a tile to `slot`. `lane_part` is 16 lane bytes behind its start. Where there is none left, only
  // the count of copies goes on.
  __device__ __forceinline__ void start(int slot, const u8* lane_part, bool there, int lane) const {
    u8* to = slots + slot + lane * 16;
#pragma unroll
    for (int i = 0; i < CHUNKS; i += WARP)
      copy_16_async_if(there && (i + WARP <= CHUNKS || lane < CHUNKS - i), to + i * 16, lane_part + i * 16);
    end_copy_group();
  }

  // Waits for the oldest tile; now the slot `before` may be filled again.
  __device__ __forceinline__ const u8* take() const {
    wait_for_copies<AHEAD - 1>();
    __syncwarp();
    return slots + next;
  }

  __device__ __forceinline__ void step() {
    before = next;
    next = next == RING_BYTES - bytes ? 0 : next + bytes;
  }
};
