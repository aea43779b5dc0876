// Computes: activations as two int8 digits: x = scale (256 high + low), after RMSNorm where norm != 0.
// Arguments: x, norm, high, low, scales, sums, tokens, token_stride, columns, eps
// Requires: tokens >= 1; columns >= 4; columns % 4 == 0; token_stride % 128 == 0; token_stride >= tokens
// Launch: (tokens, blocks that share the columns; 1 where norm != 0) blocks of 32 to 1024 threads
// Numerics: RMSNorm in float32, its sum in an order that the number of threads alone gives; one scale for 128 columns,
//   the largest |x| / 32639; digits of the nearest integer; sums are scale times an exact integer sum.
// Oracle: RMSNorm and rounding in float64, in the test of this kernel
// Measured: with matmul.cu, in the docstring of kernels/launch/matmul.py
// Source: the tile format of kernels/weights/quant_format.py

// x float32 (tokens, columns); norm float32 (columns) or 0. Written for each 128 columns (padding is zero) and token:
//   high, low  int8 (K / 128, token_stride, 128), in the order in which matmul.cu reads them: column 32 j + 8 t + i of
//              the 128 (j, t < 4; i < 8) lies at byte 64 (j / 2) + 16 t + 8 (j % 2) + i; odd tokens have their halves
//              swapped
//   scales     float32 (K / 128, token_stride)
//   sums       float32 (K / 32, token_stride), of the quantized x
#include "tile.cuh"

struct QuantizeRowsArguments {
  const float* x;
  const float* norm;
  i8* high;
  i8* low;
  float* scales;
  float* sums;
  u32 tokens, token_stride, columns;
  float eps;
};

__device__ __forceinline__ float4 load4(const float* p) { return *(const float4*)p; }

// 1 / RMS of a row, the same in every thread of the block.
__device__ float inverse_rms(const float* x, u32 columns, float eps) {
  __shared__ float partial[WARP];
  float sum = 0.0f;
  for (u32 column = 4 * threadIdx.x; column < columns; column += 4 * blockDim.x) {
    const float4 v = load4(x + column);
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = warp_sum(sum);
  const u32 warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  sum = warp_sum(lane < blockDim.x / WARP ? partial[lane] : 0.0f);
  return rsqrtf(sum / (float)columns + eps);
}

extern "C" __global__ void __launch_bounds__(1024) quantize_rows(const __grid_constant__ QuantizeRowsArguments a) {
  let_next_start();
  wait_for_previous();
  const u32 token = blockIdx.x, lane = threadIdx.x % WARP;
  const u32 chunks = (a.columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const u32 warps = blockDim.x / WARP;
  const float* x = a.x + (u64)token * a.columns;
  const float factor = a.norm ? inverse_rms(x, a.columns, a.eps) : 1.0f;
  // Lane 8 j + 2 t + h holds columns 4 lane..4 lane + 3.
  const u32 place = ((lane >> 4) ^ (token & 1)) * 64 + (lane >> 1 & 3) * 16 + (lane >> 3 & 1) * 8 + (lane & 1) * 4;
  for (u32 chunk = blockIdx.y * warps + threadIdx.x / WARP; chunk < chunks; chunk += warps * gridDim.y) {
    const u32 column = chunk * TILE_COLUMNS + 4 * lane;
    float v[4] = {};
    if (column < a.columns) {
      const float4 in = load4(x + column);
      v[0] = in.x, v[1] = in.y, v[2] = in.z, v[3] = in.w;
      if (a.norm) {
        const float4 weight = load4(a.norm + column);
        v[0] *= factor * weight.x, v[1] *= factor * weight.y, v[2] *= factor * weight.z, v[3] *= factor * weight.w;
      }
    }
    const float largest = warp_max(fmaxf(fmaxf(fabsf(v[0]), fabsf(v[1])), fmaxf(fabsf(v[2]), fabsf(v[3]))));
    const float scale = largest / LARGEST_VALUE;
    const float inverse = largest > 0.0f ? LARGEST_VALUE / largest : 0.0f;
    u32 high4 = 0, low4 = 0;
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int value = max(-32639, min(32639, __float2int_rn(v[i] * inverse)));
      int high, low;
      digits(value, high, low);
      high4 |= (u32)(high & 255) << (8 * i);
      low4 |= (u32)(low & 255) << (8 * i);
      sum += value;
    }
    const u64 at = ((u64)chunk * a.token_stride + token) * TILE_COLUMNS + place;
    *(u32*)(a.high + at) = high4;
    *(u32*)(a.low + at) = low4;
#pragma unroll
    for (int step = 4; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) a.scales[(u64)chunk * a.token_stride + token] = scale;
    if (lane % 8 == 0) a.sums[(u64)(chunk * 4 + lane / 8) * a.token_stride + token] = scale * (float)sum;
  }
}
