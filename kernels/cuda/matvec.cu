// Computes: y = W x for up to 16 tokens at once, W quantized; x optionally normalized; bias, residual or SiLU gate
// Arguments: x, weights, bias, norm, residual, out, eps, rows, columns, tokens, tiles, units, slices, slice_tiles,
//   windows, window_slices, batch_units, units_at_once, block_units, more_blocks, mean
// Requires: 1 <= tokens <= TOKENS; rows >= 1; 4 <= columns <= 65536; columns % 4 == 0; tokens * rows < 2 ** 31;
//   EPILOGUE != 2 or rows % 32 == 0; EPILOGUE != 1 or residual != 0; NORM == 0 or norm != 0; x % 16 == 0;
//   weights % 16 == 0; norm % 16 == 0; out != 0; tiles == (columns + 127) // 128;
//   units == (rows + 15) // 16 // (1 + EPILOGUE // 2); units * (1 + EPILOGUE // 2) * tiles < 2 ** 31;
//   slice_tiles >= 2; slice_tiles % 2 == 0; slices == (tiles + slice_tiles - 1) // slice_tiles;
//   windows == 1 or WINDOWED == 1; windows * window_slices >= slices; 1 <= window_slices <= WARPS;
//   units_at_once == WARPS // window_slices; batch_units >= 1; batch_units * 16 * TOKENS <= 32 * WARPS;
//   block_units >= 0; more_blocks >= 0; block_units + more_blocks >= 1
// Launch: grid: a block for each SM, or for each unit where those are at most half as many; 32 * WARPS threads; shared
//   memory as kernels/launch/matvec.py plans it
// Numerics: x as two int8 digits with a float32 scale for each 128 columns; int32 sums inside a group of weights,
//   float32 sums over groups in an order that depends on the columns and the format alone, so a token's result is
//   bitwise the same for every TOKENS, any neighbours and any grid; |sum of a group| <= 128 * 32639 * 128 < 2^30
// Oracle: float64 product of the dequantized weights, tests/gpu/test_matvec.py
// Measured: H200, 2026-11-30, python -m kernels.measure.gpu_benchmark, one token, GB/s (us). Qwen2.5-3B w4g128: qkv 1,123
//   (2.4), o 1,098 (2.0), gate/up 2,904 (8.0), down 2,145 (5.4), head 3,820 (42); all of a token 0.659 ms. 7B, attention
//   w4g128, MLP and head w3g128: 1,853 (4.6), 1,761 (3.8), 2,869 (18.5), 2,514 (10.6), 3,561 (59.8); 1.057 ms. On 16
//   SMs, GB/s an SM (a kernel that only reads: 68.8): 34, 35, 49, 52, 51; 42, 44, 28, 36, 30. Between two products of a
//   chain lie 850 clocks of the launch, 1,000 to 3,500 until x is quantized, 300 to 650 for the last sums. No gain came
//   of 8 warps a block, bulk copies on a barrier, weights of later kernels fetched into L2, copies started later,
//   larger rings. Several tokens: kernels/README.md
// Source: own
#include "matvec_input.cuh"
#include "matvec_plan.cuh"
#include "ring.cuh"
#include "tile.cuh"

__device__ __forceinline__ float load_fresh_1(const float* p) {
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}

__device__ __forceinline__ float reciprocal_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r * __fmaf_rn(-0.5f * v * r, r, 1.5f);
}

// A lane's part of a tile in registers.
struct Operand {
  LaneCodes<BITS> codes;
  u32 scales[2], minima[2];  // float16, of rows g, g + 8

  __device__ __forceinline__ void read(u32 tile, int lane) {
    codes.read_shared(tile, lane);
    const u32 of_rows = tile + Weights::CODE_BYTES + (lane % 4 % GROUPS * TILE_ROWS + lane / 4) * 2;
    scales[0] = read_shared_u16(of_rows), scales[1] = read_shared_u16(of_rows + 16);
    if (MINIMA) {
      minima[0] = read_shared_u16(of_rows + Weights::SCALE_BYTES);
      minima[1] = read_shared_u16(of_rows + Weights::SCALE_BYTES + 16);
    }
  }
};

// Adds a tile's product with x to the sums of rows g and g + 8.
__device__ __forceinline__ void multiply(const Operand& weights, u32 x, u32 scales, u32 sums, int lane,
                                         float (&acc)[SETS][2]) {
  const int t = lane % 4;
  const float scale_0 = half_to_float((u16)weights.scales[0]), scale_1 = half_to_float((u16)weights.scales[1]);
  u32 operands[4][4];
  weights.codes.template decode<0>(operands[0]);
  weights.codes.template decode<1>(operands[1]);
  weights.codes.template decode<2>(operands[2]);
  weights.codes.template decode<3>(operands[3]);
#pragma unroll
  for (int set = 0; set < SETS; set++) {
    if (SETS > 2 || BITS == 8) asm volatile("" ::: "memory");  // else x of all sets is loaded at once, and spilled
    const uint4 b = read_shared_16(x + set * SET_TOKENS * 128);
    const uint4 b_next = read_shared_16(x + (TOKENS + set * SET_TOKENS) * 128);
    int c[4] = {};
    mma_i8(c, operands[0], b.x, b.y);
    mma_i8(c, operands[1], b.z, b.w);
    mma_i8(c, operands[2], b_next.x, b_next.y);
    mma_i8(c, operands[3], b_next.z, b_next.w);
    const int token = set * SET_TOKENS + t / GROUPS % USED_TOKENS;
    const float x_scale = read_shared_float(scales + token * 4);
    acc[set][0] = __fmaf_rn((float)(c[0] * 256 + c[1]), __fmul_rn(scale_0, x_scale), acc[set][0]);
    acc[set][1] = __fmaf_rn((float)(c[2] * 256 + c[3]), __fmul_rn(scale_1, x_scale), acc[set][1]);
    if (MINIMA) {
      const float sum = read_shared_float(sums + (token * GROUPS + t % GROUPS) * 4);
      acc[set][0] = __fmaf_rn(half_to_float((u16)weights.minima[0]), sum, acc[set][0]);
      acc[set][1] = __fmaf_rn(half_to_float((u16)weights.minima[1]), sum, acc[set][1]);
    }
  }
}

// Writes a warp's sums over its slice to (token, 16 rows).
__device__ __forceinline__ void write_partials(u32 partials, float (&acc)[SETS][2], int lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int set = 0; set < SETS; set++) {
#pragma unroll
    for (int step = 1; step < GROUPS; step *= 2) {
      acc[set][0] = __fadd_rn(acc[set][0], __shfl_xor_sync(0xffffffffu, acc[set][0], step));
      acc[set][1] = __fadd_rn(acc[set][1], __shfl_xor_sync(0xffffffffu, acc[set][1], step));
    }
    if (t % GROUPS == 0 && t / GROUPS < USED_TOKENS) {
      const u32 to = partials + ((set * SET_TOKENS + t / GROUPS) * TILE_ROWS + g) * 4;
      write_shared(to, acc[set][0]);
      write_shared(to + 32, acc[set][1]);
    }
  }
}

__device__ __forceinline__ float add_slices(u32 partials, int count, float sum) {
#pragma unroll
  for (int i = 0; i < WARPS; i++)
    if (i < count) sum = __fadd_rn(sum, read_shared_float(partials + i * TOKENS * TILE_ROWS * 4));
  return sum;
}

// Times of the parts of a block, for measuring: `bias` is where they go.
#ifdef PROFILE
#define STAMP(i) \
  if (threadIdx.x == 0) ((i64*)a.bias)[blockIdx.x * 8 + (i)] = clock64()
#else
#define STAMP(i)
#endif

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) matvec(const __grid_constant__ MatvecArguments a) {
  extern __shared__ __align__(128) u8 whole[];
  let_next_start();
  STAMP(0);
  const int lane = threadIdx.x % WARP, warp = __shfl_sync(0xffffffffu, threadIdx.x / WARP, 0);

  u32 memory = shared_address(whole);
  asm volatile("" : "+r"(memory));  // not to be computed again
  Share share;
  share.first_unit = blockIdx.x * a.block_units + min(blockIdx.x, a.more_blocks);
  share.unit_count = a.block_units + (blockIdx.x < a.more_blocks);
  share.unit = warp / a.window_slices;
  share.slice = share.unit < a.units_at_once ? warp - share.unit * a.window_slices : a.slices;  // idle: no such slice
  // Every SM has its block, so that the next kernel's blocks find the same room everywhere: those without work of their
  // own repeat another's and write nothing.
  if (share.unit_count == 0) share.first_unit = blockIdx.x - a.more_blocks, share.unit_count = 1;

  // Asked for ahead of the weights: behind them they would come when all those have come.
  if (NORM && threadIdx.x * 32 < a.columns) prefetch(a.norm + threadIdx.x * 32);
  PairRing ring;
  ring.open(memory + warp * PairRing::RING_BYTES);
  Walk ahead;
  ahead.batch = -1, ahead.window = WINDOWED ? a.windows - 1 : 0, ahead.part = PARTS - 1;
  next_part(a, share, ahead, lane);
#pragma unroll 1
  for (int i = 0; i < STAGES; i++) copy_ahead(a, share, ahead, ring, lane);

  Shared shared;
  const int window_tiles = a.window_slices * a.slice_tiles, padded_tiles = (a.tiles + 3) & ~3;
  shared.digits = memory + WARPS * PairRing::RING_BYTES;
  shared.zeros = shared.digits + window_tiles * X_TILE_BYTES;
  shared.squares = shared.zeros + (GROUPS > 1 ? X_TILE_BYTES : 0);
  shared.scales = shared.squares + (NORM ? padded_tiles * TOKENS * 4 : 0);
  shared.sums = shared.scales + window_tiles * TOKENS * 4;
  shared.partials = shared.sums + (MINIMA ? window_tiles * TOKENS * GROUPS * 4 : 0);
  if (GROUPS > 1)
    for (int i = threadIdx.x; i < X_TILE_BYTES / 4; i += THREADS) write_shared(shared.zeros + i * 4, 0u);
  if (NORM && threadIdx.x < TOKENS * 4) {
    const int token = threadIdx.x / 4, place = padded_tiles - 1 - threadIdx.x % 4;
    if (place >= a.tiles) write_shared(shared.squares + (token * padded_tiles + place) * 4, 0u);
  }

  // This lane's operand b: x of its own group of columns, zeros for the others.
  const int g = lane / 4, t = lane % 4;
  const bool own = t * GROUPS / 4 == g / 2 % GROUPS;
  const u32 b = own ? shared.digits + g / (2 * GROUPS) % USED_TOKENS * 128 + g % 2 * 64 + t * 16 : shared.zeros;
  const int b_stride = own ? X_TILE_BYTES : 0;

#ifdef PROFILE
  const float* bias = nullptr;
#else
  const float* bias = a.bias;
#endif

  // This thread's output of each batch.
  const int row = threadIdx.x % TILE_ROWS, token = threadIdx.x / TILE_ROWS % TOKENS;
  const int unit_in_batch = threadIdx.x / (TILE_ROWS * TOKENS);
  const int out_rows = PARTS == 2 ? a.units * TILE_ROWS : a.rows;
  const int item_bytes = a.window_slices * TOKENS * TILE_ROWS * 4;
  const int buffer_bytes = a.batch_units * PARTS * item_bytes;
  const u32 from = shared.partials + unit_in_batch * PARTS * item_bytes + (token * TILE_ROWS + row) * 4;

  if (WINDOWED) {
    wait_for_previous();
  } else {
    Input input;
    if (NORM) input.load_norm(a, 0, a.tiles, warp, lane);
    const float* x_from = Input::part(a, 0, warp, 0, lane);
    asm volatile("" : "+l"(x_from));  // computed here, not behind the wait
    STAMP(1);
    wait_for_previous();
    STAMP(2);
    input.load(a, x_from, 0, a.tiles, warp, 0, lane);
    quantize(a, shared, input, 0, a.tiles, warp, lane, true);
    __syncthreads();
    STAMP(3);
  }

  float inverse_rms = 1;
  int buffer = 0;
  for (int batch = 0; batch * a.batch_units < share.unit_count; batch++) {
    const int out_row = (share.first_unit + batch * a.batch_units + unit_in_batch) * TILE_ROWS + row;
    const int units = units_of_batch(a, share, batch);
    const bool writes = unit_in_batch < units && token < a.tokens && out_row < out_rows && !is_spare(a);
    float first = 0, second = 0, added = 0, first_bias = 0;  // the last two early
    if (writes && EPILOGUE == ADD) added = load_fresh_1(a.residual + (token * out_rows + out_row));
    if (writes && EPILOGUE == STORE && bias) first_bias = bias[out_row];
    for (int window = 0; window < (WINDOWED ? a.windows : 1); window++) {
      const int first_slice = window * a.window_slices, x_tile = first_slice * a.slice_tiles;
      const int slices = min(a.window_slices, a.slices - first_slice);
      if (WINDOWED) {
        const int count = min(window_tiles, a.tiles - x_tile);
        Input input;
        if (NORM) input.load_norm(a, x_tile, count, warp, lane);
        input.load(a, Input::part(a, x_tile, warp, 0, lane), x_tile, count, warp, 0, lane);
        quantize(a, shared, input, x_tile, count, warp, lane, batch == 0);
        __syncthreads();
      }
      if (share.slice < slices) {
        const int start = share.slice * a.slice_tiles;  // in the window
        const int count = min(a.slice_tiles, a.tiles - x_tile - start);
#pragma unroll 1
        for (int part = 0; part < PARTS; part++) {
          u32 to = shared.partials + buffer * buffer_bytes + (share.unit * PARTS + part) * item_bytes +
                   share.slice * TOKENS * TILE_ROWS * 4;
#pragma unroll 1
          for (int unit = share.unit; unit < units; unit += a.units_at_once) {
            float acc[SETS][2] = {};
            u32 x = b + start * b_stride;
            u32 scales = shared.scales + start * TOKENS * 4;
            u32 sums = shared.sums + start * TOKENS * GROUPS * 4;
#pragma unroll 1
            for (int tiles = count; tiles > 0; tiles -= 2) {
              Operand operand;
              const u32 pair = ring.take();
              operand.read(pair, lane);
              multiply(operand, x, scales, sums, lane, acc);
              x += b_stride, scales += TOKENS * 4, sums += TOKENS * GROUPS * 4;
              operand.read(pair + Weights::BYTES, lane);
              copy_ahead(a, share, ahead, ring, lane);
              if (tiles == 1) break;
              multiply(operand, x, scales, sums, lane, acc);
              x += b_stride, scales += TOKENS * 4, sums += TOKENS * GROUPS * 4;
            }
            write_partials(to, acc, lane);
            to += a.units_at_once * PARTS * item_bytes;
          }
        }
      }
      STAMP(4);
      __syncthreads();
      STAMP(5);
      if (writes) {
        first = add_slices(from + buffer * buffer_bytes, slices, first);
        if (PARTS == 2) second = add_slices(from + buffer * buffer_bytes + item_bytes, slices, second);
      }
      buffer ^= 1;
    }
    if (!writes) continue;
    if (NORM) {
      if (batch == 0) {
        float sum = 0;
#pragma unroll 4
        for (int i = 0; i < padded_tiles; i += 4) {
          const uint4 bits = read_shared_16(shared.squares + (token * padded_tiles + i) * 4);
          const float left = __fadd_rn(__uint_as_float(bits.x), __uint_as_float(bits.y));
          sum = __fadd_rn(sum, __fadd_rn(left, __fadd_rn(__uint_as_float(bits.z), __uint_as_float(bits.w))));
        }
        inverse_rms = reciprocal_root(__fmaf_rn(sum, a.mean, a.eps));
      }
      first = __fmul_rn(first, inverse_rms);
      second = __fmul_rn(second, inverse_rms);
    }
    if (bias) first = __fadd_rn(first, EPILOGUE == STORE ? first_bias : bias[out_row]);
    if (EPILOGUE == GATED) {
      if (bias) second = __fadd_rn(second, bias[out_rows + out_row]);
      first = first / (1.0f + expf(-first)) * second;
    }
    if (EPILOGUE == ADD) first = __fadd_rn(first, added);
    a.out[token * out_rows + out_row] = first;
    STAMP(6);
#ifdef PROFILE
    if (threadIdx.x == 0) {
      u32 sm;
      asm("mov.u32 %0, %smid;" : "=r"(sm));
      ((i64*)a.bias)[blockIdx.x * 8 + 7] = sm;
    }
#endif
  }
}
