// A warp's private queue of weight tiles in shared memory, filled ahead by asynchronous copies.
//
// Tiles come out in the order in which they were started. A slot is filled again one tile after it was read, so that
// one __syncwarp() a tile orders both: stages slots hold stages - 1 tiles ahead. With bulk (sm_90) a copy is one
// instruction of one lane and completes on a barrier in shared memory; otherwise every lane copies 16 bytes at a time.
#pragma once
#include "device.cuh"

template <int bytes, int stages, bool bulk>
struct TileRing {
  static constexpr int CHUNKS = bytes / 16;
  static constexpr int AHEAD = stages - 1;
  static constexpr int SLOT_BYTES = bytes;
  static constexpr int BARRIER_BYTES = bulk ? stages * 8 : 0;

  u8* slots;
  u64* barriers;
  int lane, next_in, next_out;
  u32 parity;

  __device__ __forceinline__ void open(u8* ring, u64* warp_barriers, int lane_index) {
    slots = ring, barriers = warp_barriers, lane = lane_index, next_in = 0, next_out = 0, parity = 0;
#if __CUDA_ARCH__ >= 900
    if (bulk) {
      if (lane == 0) {
#pragma unroll
        for (int i = 0; i < stages; i++)
          asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + i)) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      }
      __syncwarp();
    }
#endif
  }

  // Starts the copy of one more tile; nullptr keeps the count of copies where there is none left.
  __device__ __forceinline__ void start(const u8* tile) {
    u8* slot = slots + next_in * SLOT_BYTES;
#if __CUDA_ARCH__ >= 900
    if (bulk) {
      if (tile && lane == 0) {
        const u32 barrier = shared_address(barriers + next_in);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "n"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(slot)),
                     "l"(tile), "n"(bytes), "r"(barrier)
                     : "memory");
      }
      next_in = next_in == stages - 1 ? 0 : next_in + 1;
      return;
    }
#endif
    if (tile) {
#pragma unroll
      for (int i = 0; i < CHUNKS; i += WARP)
        if (i + WARP <= CHUNKS || lane < CHUNKS - i) copy_16_async(slot + (i + lane) * 16, tile + (i + lane) * 16);
    }
    end_copy_group();
    next_in = next_in == stages - 1 ? 0 : next_in + 1;
  }

  // Waits for the oldest tile and gives it; the slot of the tile before may be filled again.
  __device__ __forceinline__ const u8* take() {
    const u8* slot = slots + next_out * SLOT_BYTES;
#if __CUDA_ARCH__ >= 900
    if (bulk) {
      const u32 barrier = shared_address(barriers + next_out);
      asm volatile(
          "{\n .reg .pred done;\n"
          "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
          "@!done bra again;\n}" ::"r"(barrier),
          "r"(parity)
          : "memory");
      if (next_out == stages - 1) next_out = 0, parity ^= 1;
      else next_out++;
      __syncwarp();
      return slot;
    }
#endif
    wait_for_copies<stages - 2>();
    __syncwarp();
    next_out = next_out == stages - 1 ? 0 : next_out + 1;
    return slot;
  }
};
