// Computes: a matrix of ggml's blocks or of floats as tiles of kernels/weights/quant_format.py, groups of 32 columns
// Arguments: source, destination, row_bytes, kind, bits, minima, rows, columns
// Requires: 0 <= kind <= 10; rows >= 1; columns >= 1; row_bytes >= 1; kind >= 8 or columns % 32 == 0;
//   not 5 <= kind <= 7 or columns % 256 == 0; source % 16 == 0; destination % 16 == 0;
//   bits == 8 or (bits == 4 and kind in (0, 1, 5)); minima in (0, 1); minima == 1 or kind in (0, 2, 4, 7, 8, 9, 10)
// Launch: grid ceil(tiles / 4), block 256: one thread for each group of 32 columns of a row, 64 for each tile
// Numerics: float32, each product, sum and quotient rounded to nearest, never contracted; float16 rounded once
// Oracle: kernels/weights/block_tiles.py repack_reference, to the bit
// Measured: 11,008 x 2,048 weights on an H200: q4_0 14 us, q4_k 21, q8_0 24, q6_k 56, f16 118, f32 208: 0.1 to 1.6
//   times 10^12 weights a second
// Source: own; the layouts of the blocks are ggml's
#include "device.cuh"

#define TILE_ROWS 16
#define TILE_COLUMNS 128
#define GROUP 32
#define NOT_A_NUMBER_HALF 0x7e00

struct RepackArguments {
  const u8* source;
  u8* destination;
  i64 row_bytes;
  int kind, bits, minima, rows, columns;
};

// In the order of KINDS of kernels/launch/repack.py.
enum Kind { Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16, F32 };

// A group: four codes a register, columns 4 r .. 4 r + 3 of it in register r.
struct Group {
  u32 codes[8];
  u16 scale, minimum;
};

__device__ __forceinline__ u16 read_u16(const u8* p) { return *(const u16*)p; }
__device__ __forceinline__ u32 read_u32(const u8* p) { return (u32)read_u16(p) | (u32)read_u16(p + 2) << 16; }

// Bits 4 r .. 4 r + 3 as the lowest bits of four bytes.
__device__ __forceinline__ u32 spread(u32 bits, int r) { return (bits >> 4 * r & 15) * 0x00204081u & 0x01010101u; }

// Bytes below 32 less 16; no byte borrows from its neighbour.
__device__ __forceinline__ u32 less_16(u32 bytes) { return (bytes + 0x70707070u) ^ 0x80808080u; }

// Bytes below 16 less 8, likewise.
__device__ __forceinline__ u32 less_8(u32 bytes) { return (bytes + 0x78787878u) ^ 0x80808080u; }

// 16 bytes of nibbles: column j below, column j + 16 above.
__device__ __forceinline__ void read_nibbles(const u8* p, Group& group) {
#pragma unroll
  for (int r = 0; r < 4; r++) {
    const u32 packed = read_u32(p + 4 * r);
    group.codes[r] = packed & 0x0f0f0f0fu;
    group.codes[r + 4] = packed >> 4 & 0x0f0f0f0fu;
  }
}

__device__ __forceinline__ void read_fifth_bits(const u8* p, Group& group) {
  const u32 bits = read_u32(p);
#pragma unroll
  for (int r = 0; r < 8; r++) group.codes[r] |= spread(bits, r) << 4;
}

// Scale and minimum of group g of a q4_k or q5_k block; the minimum moves up by `middle` codes.
__device__ __forceinline__ void read_k_scales(const u8* block, int g, float middle, Group& group) {
  const u8* packed = block + 4;
  int scale, minimum;
  if (g < 4) {
    scale = packed[g] & 63;
    minimum = packed[g + 4] & 63;
  } else {
    scale = (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
    minimum = packed[g + 4] >> 4 | packed[g] >> 6 << 4;
  }
  const float step = __fmul_rn(half_to_float(read_u16(block)), (float)scale);
  const float offset = __fmul_rn(half_to_float(read_u16(block + 2)), (float)minimum);
  group.scale = float_to_half(step);
  group.minimum = float_to_half(__fsub_rn(__fmul_rn(middle, step), offset));
}

__device__ __forceinline__ void read_k_nibbles(const u8* nibbles, int g, Group& group) {
#pragma unroll
  for (int r = 0; r < 8; r++) group.codes[r] = read_u32(nibbles + 32 * (g / 2) + 4 * r) >> 4 * (g % 2) & 0x0f0f0f0fu;
}

// The lower nibbles of the bytes of two registers.
__device__ __forceinline__ u32 join(u32 low, u32 high) { return (low & 0x0f0f0f0fu) | (high & 0x0f0f0f0fu) << 4; }

// Weights rounded to 8 bits; NaN where they cannot be.
__device__ __forceinline__ void round_to_nearest(const float (&weights)[GROUP], Group& group) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    const float size = fabsf(weights[i]);
    if (size > largest || size != size) largest = size;  // once it is NaN it stays so
  }
  u16 scale = float_to_half(__fdiv_rn(largest, 127.0f));
  if (__fmul_rn(127.5f, half_to_float(scale)) < largest) scale++;
  if ((scale & 0x7c00) == 0x7c00) scale = NOT_A_NUMBER_HALF;
  const float divisor = half_to_float(scale);
  const bool usable = divisor > 0.0f;
#pragma unroll
  for (int r = 0; r < 8; r++) {
    u32 codes = 0;
#pragma unroll
    for (int b = 0; b < 4; b++) {
      const float quotient = rintf(__fdiv_rn(weights[4 * r + b], divisor));
      const int code = usable ? (int)fminf(fmaxf(quotient, -127.0f), 127.0f) : 0;
      codes |= (u32)(u8)code << 8 * b;
    }
    group.codes[r] = codes;
  }
  group.scale = scale;
}

__device__ __forceinline__ void read_q6_k(const u8* block, int g, Group& group) {
  const u8* nibbles = block + 64 * (g / 4) + 32 * (g % 2);
  const u8* high = block + 128 + 32 * (g / 4);
  const float d = half_to_float(read_u16(block + 208));
  float weights[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    const float scale = __fmul_rn(d, (float)(i8)block[192 + 2 * g + i / 16]);
    const int code = (nibbles[i] >> 4 * (g % 4 / 2) & 15) | (high[i] >> 2 * (g % 4) & 3) << 4;
    weights[i] = __fmul_rn(scale, (float)(code - 32));
  }
  round_to_nearest(weights, group);
}

__device__ __forceinline__ void read_floats(const u8* row, int kind, int start, int columns, Group& group) {
  float weights[GROUP];
#pragma unroll
  for (int i = 0; i < GROUP; i++) {
    weights[i] = 0.0f;
    if (start + i < columns) {
      if (kind == F32) weights[i] = ((const float*)row)[start + i];
      if (kind == F16) weights[i] = half_to_float(((const u16*)row)[start + i]);
      if (kind == BF16) weights[i] = __uint_as_float((u32)((const u16*)row)[start + i] << 16);
    }
  }
  round_to_nearest(weights, group);
}

__device__ __forceinline__ void read_group(const u8* row, int kind, int start, int columns, Group& group) {
  const int index = start / GROUP, in_block = index % 8;
  const u8* block;
  switch (kind) {
    case Q4_0:
      block = row + (i64)index * 18;
      group.scale = read_u16(block);
      read_nibbles(block + 2, group);
      break;
    case Q4_1:
      block = row + (i64)index * 20;
      group.scale = read_u16(block);
      group.minimum = float_to_half(
          __fadd_rn(half_to_float(read_u16(block + 2)), __fmul_rn(8.0f, half_to_float(group.scale))));
      read_nibbles(block + 4, group);
      break;
    case Q5_0:
    case Q5_1:
      block = row + (i64)index * (kind == Q5_0 ? 22 : 24);
      group.scale = read_u16(block);
      if (kind == Q5_1) group.minimum = read_u16(block + 2);
      read_nibbles(block + (kind == Q5_0 ? 6 : 8), group);
      read_fifth_bits(block + (kind == Q5_0 ? 2 : 4), group);
      if (kind == Q5_0) {
#pragma unroll
        for (int r = 0; r < 8; r++) group.codes[r] = less_16(group.codes[r]);
      }
      break;
    case Q8_0:
      block = row + (i64)index * 34;
      group.scale = read_u16(block);
#pragma unroll
      for (int r = 0; r < 8; r++) group.codes[r] = read_u32(block + 2 + 4 * r);
      break;
    case Q4_K:
      block = row + (i64)(index / 8) * 144;
      read_k_scales(block, in_block, 8.0f, group);
      read_k_nibbles(block + 16, in_block, group);
      break;
    case Q5_K:
      block = row + (i64)(index / 8) * 176;
      read_k_scales(block, in_block, 16.0f, group);
      read_k_nibbles(block + 48, in_block, group);
#pragma unroll
      for (int r = 0; r < 8; r++) {
        group.codes[r] = less_16(group.codes[r] | (read_u32(block + 16 + 4 * r) >> in_block & 0x01010101u) << 4);
      }
      break;
    case Q6_K:
      read_q6_k(row + (i64)(index / 8) * 210, in_block, group);
      break;
    default:
      read_floats(row, kind, start, columns, group);
  }
}

extern "C" __global__ void __launch_bounds__(256) repack(const __grid_constant__ RepackArguments a) {
  let_next_start();
  wait_for_previous();
  const i64 tile = (i64)blockIdx.x * 4 + threadIdx.x / 64;
  const int across = (a.columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
  if (tile >= (i64)((a.rows + TILE_ROWS - 1) / TILE_ROWS) * across) return;
  // As in the drawing: lane 4 g + t holds columns 32 t .. 32 t + 31 of rows g and g + 8.
  const int half = threadIdx.x / 32 % 2, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const i64 row = tile / across * TILE_ROWS + 8 * half + g;
  const int start = (int)(tile % across) * TILE_COLUMNS + GROUP * t;
  const bool from_four_bits = a.kind == Q4_0 || a.kind == Q4_1 || a.kind == Q4_K;

  Group group = {};
  if (row < a.rows && start < a.columns) {
    read_group(a.source + row * a.row_bytes, a.kind, start, a.columns, group);
    if (from_four_bits) {
#pragma unroll
      for (int r = 0; r < 8; r++) group.codes[r] = less_8(group.codes[r]);
    }
  }

  const int code_bytes = 256 * a.bits;
  u8* destination = a.destination + tile * (code_bytes + (a.minima ? 256 : 128));
  const u32(&c)[8] = group.codes;
  if (a.bits == 4) {
    ((uint4*)destination)[32 * half + lane] =
        make_uint4(join(c[0], c[1]), join(c[2], c[3]), join(c[4], c[5]), join(c[6], c[7]));
  } else {
    ((uint4*)destination)[64 * half + lane] = make_uint4(c[0], c[1], c[2], c[3]);
    ((uint4*)destination)[64 * half + 32 + lane] = make_uint4(c[4], c[5], c[6], c[7]);
  }
  u16* scales = (u16*)(destination + code_bytes);
  scales[TILE_ROWS * t + 8 * half + g] = group.scale;
  if (a.minima) scales[TILE_ROWS * (4 + t) + 8 * half + g] = group.minimum;
}
