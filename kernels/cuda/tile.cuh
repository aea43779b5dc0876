// The weight tiles of kernels/weights/quant_format.py as tensor-core operands, and activations as two int8 digits.
//
// A tile is 16 rows by 128 columns. Lane 4g + t holds columns 32t..32t+31 of rows g and g + 8: 64 codes, decoded into
// four steps of mma_i8, step j taking columns 8j..8j+7 of the lane's 32. The activations of a token lie in column order,
// so the same lane's operand b of step j is bytes 32t + 8j..+7 of the tile's 128.
//
// Codes come out as int8 scaled by 2^(8 - BITS): 4 bits as 16 code, 3 bits as 32 code, 8 bits as they are.
//
// An activation x is scale * (256 high + low), both digits int8, one float32 scale for each 128 columns of a token:
// 16 bits, more than float16 has, with no overflow, at the speed of int8.
#pragma once
#include "device.cuh"

#define TILE_ROWS 16
#define TILE_COLUMNS 128

// Names of template parameters are small: capitals belong to the macros that choose a kernel's variant.
template <int bits, int group, bool minima>
struct Tile {
  static constexpr int CODE_BYTES = TILE_ROWS * TILE_COLUMNS * bits / 8;
  static constexpr int GROUPS = TILE_COLUMNS / group;
  static constexpr int SCALE_BYTES = GROUPS * TILE_ROWS * 2;
  static constexpr int BYTES = CODE_BYTES + SCALE_BYTES * (minima ? 2 : 1);
  static constexpr float CODE_UNIT = 1.0f / (1 << (8 - bits));
};

// The codes of one lane, 16 bytes at a time where the format allows: load from global memory, read_shared from a tile
// that was copied to shared memory.
template <int bits>
struct LaneCodes;

template <>
struct LaneCodes<4> {
  uint4 rows[2];  // row g, row g + 8
  __device__ __forceinline__ void load(const u8* tile, int lane) {
    rows[0] = load_streamed((const uint4*)tile + lane);
    rows[1] = load_streamed((const uint4*)tile + WARP + lane);
  }
  __device__ __forceinline__ void read_shared(u32 tile, int lane) {
    rows[0] = read_shared_16(tile + lane * 16);
    rows[1] = read_shared_16(tile + (WARP + lane) * 16);
  }
  template <int step>
  __device__ __forceinline__ void decode(u32 (&a)[4]) const {
    const u32 upper = ((const u32*)&rows[0])[step], lower = ((const u32*)&rows[1])[step];
    a[0] = upper << 4 & 0xf0f0f0f0u;
    a[1] = lower << 4 & 0xf0f0f0f0u;
    a[2] = upper & 0xf0f0f0f0u;
    a[3] = lower & 0xf0f0f0f0u;
  }
};

template <>
struct LaneCodes<3> {
  uint4 low;  // the two low bits: row g columns 0..15, 16..31, row g + 8 likewise
  uint2 top;  // the top bit: row g, row g + 8
  __device__ __forceinline__ void load(const u8* tile, int lane) {
    low = load_streamed((const uint4*)tile + lane);
    top = ((const uint2*)(tile + 512))[lane];
  }
  __device__ __forceinline__ void read_shared(u32 tile, int lane) {
    low = read_shared_16(tile + lane * 16);
    top = read_shared_8(tile + 512 + lane * 8);
  }
  template <int reg>
  static __device__ __forceinline__ u32 code(u32 low_bits, u32 top_bits) {
    constexpr int SHIFT = 5 - 2 * (reg % 4);
    const u32 low_part = SHIFT >= 0 ? low_bits << (SHIFT & 31) : low_bits >> (-SHIFT & 31);
    return (low_part & 0x60606060u) | (top_bits << (7 - reg) & 0x80808080u);
  }
  template <int step>
  __device__ __forceinline__ void decode(u32 (&a)[4]) const {
    const u32 upper = step < 2 ? low.x : low.y, lower = step < 2 ? low.z : low.w;
    a[0] = code<2 * step>(upper, top.x);
    a[1] = code<2 * step>(lower, top.y);
    a[2] = code<2 * step + 1>(upper, top.x);
    a[3] = code<2 * step + 1>(lower, top.y);
  }
};

template <>
struct LaneCodes<8> {
  uint4 rows[2][2];  // [half][part]
  __device__ __forceinline__ void load(const u8* tile, int lane) {
#pragma unroll
    for (int i = 0; i < 4; i++) rows[i / 2][i % 2] = load_streamed((const uint4*)tile + i * WARP + lane);
  }
  __device__ __forceinline__ void read_shared(u32 tile, int lane) {
#pragma unroll
    for (int i = 0; i < 4; i++) rows[i / 2][i % 2] = read_shared_16(tile + (i * WARP + lane) * 16);
  }
  template <int step>
  __device__ __forceinline__ void decode(u32 (&a)[4]) const {
    const u32* upper = (const u32*)&rows[0][step / 2];
    const u32* lower = (const u32*)&rows[1][step / 2];
    a[0] = upper[step % 2 * 2];
    a[1] = lower[step % 2 * 2];
    a[2] = upper[step % 2 * 2 + 1];
    a[3] = lower[step % 2 * 2 + 1];
  }
};

// Splits x / scale, an integer within +-32639, into its digits.
__device__ __forceinline__ void digits(int value, int& high, int& low) {
  high = (value + 128) >> 8;
  low = value - (high << 8);
}
#define LARGEST_VALUE 32639.0f
