// A warp's private queue of weight tiles in shared memory, filled ahead by asynchronous copies.
//
// Tiles come out in the order in which they were started. A tile is read into registers as soon as it is taken, so its
// slot is filled again while it is worked on, and all `stages` slots are on their way.
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
  static constexpr int RING_BYTES = bytes * stages;

  u8* slots;
  int slot;  // offset of the tile that is taken next

  __device__ __forceinline__ void open(u8* ring) { slots = ring, slot = 0; }

  // Starts the copy of a tile. `lane_part` is 16 lane bytes behind its start. Where there is none left, only the count
  // of copies goes on.
  __device__ __forceinline__ void start(int to_slot, const u8* lane_part, bool there, int lane) const {
    u8* to = slots + to_slot + lane * 16;
#pragma unroll
    for (int i = 0; i < CHUNKS; i += WARP)
      copy_16_async_if(there && (i + WARP <= CHUNKS || lane < CHUNKS - i), to + i * 16, lane_part + i * 16);
    end_copy_group();
  }

  // Waits for the oldest tile.
  __device__ __forceinline__ const u8* take() const {
    wait_for_copies<stages - 1>();
    __syncwarp();
    return slots + slot;
  }

  // Every lane has read the tile that was taken: another one comes into its place.
  __device__ __forceinline__ void refill(const u8* lane_part, bool there, int lane) {
    __syncwarp();
    start(slot, lane_part, there, lane);
    slot = slot == RING_BYTES - bytes ? 0 : slot + bytes;
  }
};
