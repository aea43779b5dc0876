// Computes: nothing: reads count words of 16 bytes once, as fast as the memory gives them.
// Arguments: data, count, out
// Requires: count >= 1
// Launch: any grid, 512 threads; overlap off, since its time is what is wanted.
// Numerics: none; out[0] is written only where the words have one pattern of bits in 2^32, so that no load is dropped.
// Oracle: none; its result is a time.
// Measured: docs/measured.md, the read rate of each machine.
// Source: grid-stride loop with eight loads in flight.
#include "device.cuh"

#define IN_FLIGHT 8

struct ReadRateArguments {
  const uint4* data;
  u64 count;
  u32* out;
};

extern "C" __global__ void __launch_bounds__(512) read_rate(const __grid_constant__ ReadRateArguments a) {
  let_next_start();
  wait_for_previous();
  const u64 stride = (u64)gridDim.x * blockDim.x;
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 bits = 0;
  for (; i + (IN_FLIGHT - 1) * stride < a.count; i += IN_FLIGHT * stride) {
    uint4 v[IN_FLIGHT];
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) v[k] = load_streamed(a.data + i + k * stride);
#pragma unroll
    for (int k = 0; k < IN_FLIGHT; k++) bits ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  for (; i < a.count; i += stride) {
    const uint4 v = load_streamed(a.data + i);
    bits ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (bits == 0x9e3779b9u) a.out[0] = bits;
}
