// Computes: out[i] = x[rows[i]], rows of float32.
// Arguments: x, rows, out, count, columns
// Requires: count >= 1; columns >= 1; columns % 4 == 0
// Launch: grid (ceil(columns / 1024), count), block 256.
// Numerics: copies.
// Oracle: NumPy, in tests/gpu/test_elementwise.py.
// Measured: kernels/README.md.
// Source: none.
#include "device.cuh"

struct TakeRowsArguments {
  const float* x;   // (any, columns)
  const int* rows;  // (count), each a row of x
  float* out;       // (count, columns)
  int count, columns;
};

extern "C" __global__ void __launch_bounds__(256) take_rows(const __grid_constant__ TakeRowsArguments a) {
  wait_for_previous();  // and the next kernel starts when this one ends: attention_decode.cu says why
  const int column = (blockIdx.x * 256 + threadIdx.x) * 4;
  if (column >= a.columns) return;
  const i64 from = (i64)a.rows[blockIdx.y] * a.columns + column, to = (i64)blockIdx.y * a.columns + column;
  *(float4*)(a.out + to) = *(const float4*)(a.x + from);
}
