// Weight tiles in shared memory as tensor-core operands whose steps do not cross groups of columns: step j takes
// columns 32 j..32 j + 31. Lane 4 g + t takes columns 32 j + 8 t..+7 of rows g and g + 8; they lie in the part of
// lane 4 g + j of the tile (kernels/weights/quant_format.py), so 16-byte parts change places in shared memory, or lanes would
// meet in a bank.
#pragma once
#include "tile.cuh"

typedef Tile<BITS, GROUP, MINIMA> Weights;

// 16-byte parts of a tile: those that change places, and the others.
constexpr int MOVED = BITS == 3 ? 32 : Weights::CODE_BYTES / 16;  // not the top bits of 3-bit codes, nor the scales
constexpr int OTHERS = Weights::BYTES / 16 - MOVED;

// Where one of the MOVED parts of a tile lies in shared memory.
__device__ __forceinline__ u32 placed(u32 chunk) {
  return chunk ^ (BITS == 8 ? (chunk >> 3 & 1) | (chunk >> 5 & 1) << 1 : chunk >> 3 & 3);
}

__device__ __forceinline__ u32 word_at(const u8* p) { return *(const u32*)p; }

// 16 bytes from global memory to an address in shared memory.
__device__ __forceinline__ void copy_16_to(u32 address, const uint4* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
#else
  const uint4 v = *from;
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
#endif
}

// Lane i names a row of 16 bytes, (i / 8, i % 8); lane 4 g + t gets word t of the rows (0..3, g).
__device__ __forceinline__ uint4 load_matrices(u32 address) {
  uint4 v;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// Operands a of the four steps of a tile: lane 4 g + t takes columns 32 step + 8 t..+7 of rows g and g + 8.
__device__ __forceinline__ void load_codes(const u8* tile, int g, int t, u32 (&a)[4][4]) {
  if constexpr (BITS == 4) {
    const u32 lane = 4 * g + t;
    const u32 rows = shared_address(tile) + placed(4 * (lane & 7) + (lane >> 3)) * 16;
    const uint4 upper = load_matrices(rows), lower = load_matrices(rows + WARP * 16);
#pragma unroll
    for (int step = 0; step < 4; step++) {
      const u32 up = ((const u32*)&upper)[step], down = ((const u32*)&lower)[step];
      a[step][0] = up << 4 & 0xf0f0f0f0u;
      a[step][1] = down << 4 & 0xf0f0f0f0u;
      a[step][2] = up & 0xf0f0f0f0u;
      a[step][3] = down & 0xf0f0f0f0u;
    }
    return;
  }
#pragma unroll
  for (int step = 0; step < 4; step++) {
    const u32 lane = 4 * g + step;
    if constexpr (BITS == 3) {
      const u8* low = tile + placed(lane) * 16 + 4 * (t >> 1);
      const uint2 top = *(const uint2*)(tile + 512 + lane * 8);
      const u32 upper = word_at(low) >> 4 * (t & 1), lower = word_at(low + 8) >> 4 * (t & 1);
      const u32 upper_top = top.x >> 2 * t, lower_top = top.y >> 2 * t;
      a[step][0] = (upper << 5 & 0x60606060u) | (upper_top << 7 & 0x80808080u);
      a[step][1] = (lower << 5 & 0x60606060u) | (lower_top << 7 & 0x80808080u);
      a[step][2] = (upper << 3 & 0x60606060u) | (upper_top << 6 & 0x80808080u);
      a[step][3] = (lower << 3 & 0x60606060u) | (lower_top << 6 & 0x80808080u);
    } else {
      const u32 part = WARP * (t >> 1) + lane;
      const uint2 upper = *(const uint2*)(tile + placed(part) * 16 + 8 * (t & 1));
      const uint2 lower = *(const uint2*)(tile + placed(2 * WARP + part) * 16 + 8 * (t & 1));
      a[step][0] = upper.x, a[step][1] = lower.x, a[step][2] = upper.y, a[step][3] = lower.y;
    }
  }
}
