// Computes: y = W x for up to 8 tokens at once, W quantized; x optionally normalized, y with bias, residual or SiLU gate
// Arguments: x, weights, bias, norm, residual, out, eps, rows, columns, tokens, epilogue, tiles, units, slices,
//   slice_tiles, windows, window_slices, batch_units, units_at_once
// Requires: 1 <= tokens <= TOKENS; rows >= 1; 4 <= columns <= 65536; columns % 4 == 0; 0 <= epilogue <= 2;
//   epilogue != 2 or rows % 32 == 0; epilogue != 1 or residual != 0; x % 16 == 0; weights % 16 == 0; norm % 16 == 0;
//   out != 0; tiles == (columns + 127) // 128; units == (rows + 15) // 16 // (1 + epilogue // 2);
//   slice_tiles >= 1; slices == (tiles + slice_tiles - 1) // slice_tiles;
//   windows * window_slices >= slices; 1 <= window_slices <= WARPS; units_at_once == WARPS // window_slices;
//   batch_units >= 1; batch_units * 16 * TOKENS <= 32 * WARPS
// Launch: at most a block for each row tile (pair of row tiles where gated), 32 * WARPS threads, shared memory as
//   kernels/linear.py plans it; each block takes an even share of the row tiles
// Numerics: x as two int8 digits with a float32 scale for each 128 columns; int32 sums inside a group of weights, float32
//   sums over groups in an order that depends on `columns` alone, so a token's result is bitwise the same for every
//   TOKENS, any neighbours and any grid; |sum of a group| <= 128 * 32639 * 128 < 2^30
// Oracle: float64 product of the dequantized weights, tests/gpu/test_matvec.py
// Measured: not yet
// Source: own
#include "ring.cuh"
#include "tile.cuh"

#ifndef BITS
#define BITS 4
#define GROUP 128
#define MINIMA 0
#define TOKENS 1
#endif
#ifndef WARPS
#define WARPS 16
#endif
#ifndef STAGES
#define STAGES 4
#endif
#ifndef RESIDENT
// Two blocks of 512 threads share an SM, so that the next kernel can start beside this one; where a lane holds many sums
// they need more registers than that leaves.
#define RESIDENT (TOKENS * (128 / GROUP) > 8 ? 16 / WARPS : 32 / WARPS)
#endif

#define THREADS (WARPS * WARP)
#define STORE 0
#define ADD 1
#define GATED 2

struct MatvecArguments {
  const float* x;         // (tokens, columns)
  const u8* weights;      // tiles
  const float* bias;      // (rows,) or null
  const float* norm;      // (columns,) or null: RMSNorm of x with these weights
  const float* residual;  // like out, for ADD; may be out itself
  float* out;             // (tokens, rows), GATED: (tokens, rows / 2)
  float eps;
  int rows, columns, tokens, epilogue;
  // The plan, kernels/linear.py. K is cut into slices, each summed by one warp; x of a window of slices lies in shared
  // memory at a time; a unit is a row tile, a pair of them where GATED; a batch of units is summed between two barriers.
  int tiles, units;          // along K; along the rows
  int slices, slice_tiles;   // of K; tiles of a slice
  int windows, window_slices;
  int batch_units, units_at_once;  // the latter: WARPS / window_slices
};

typedef Tile<BITS, GROUP, MINIMA != 0> Weights;
typedef TileRing<Weights::BYTES, STAGES> Ring;

constexpr int GROUPS = Weights::GROUPS;
// The 8 columns of operand b are (token, group, digit): a lane holds x of its own group only and zeros for the others,
// so each column of the product sums one group.
constexpr int SET_TOKENS = 4 / GROUPS;
constexpr int SETS = (TOKENS + SET_TOKENS - 1) / SET_TOKENS;
constexpr int USED_TOKENS = TOKENS < SET_TOKENS ? TOKENS : SET_TOKENS;
constexpr int X_TILE_BYTES = TILE_COLUMNS * 2 * TOKENS;  // [part 2][token][digit 2][t 4][16]

// What lies in shared memory behind the rings.
struct Shared {
  u8* digits;         // (window tiles, X_TILE_BYTES)
  u8* zeros;          // X_TILE_BYTES where GROUPS > 1
  float* scales;      // (window tiles, TOKENS), times the unit of the codes
  float* sums;        // (window tiles, TOKENS, GROUPS) where MINIMA: sum of x
  float* squares;     // (tiles, TOKENS)
  float* inverse_rms; // (TOKENS)
  float* partials;    // [2][unit][part][slice][token][16 rows]
};

__device__ __forceinline__ float4 load_fresh(const float* p) {
  float4 v;
  asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ float load_fresh_1(const float* p) {
  float v;
  asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void fetch_to_l2(const void* p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

// The largest of values that are not negative: their bits are ordered like integers.
__device__ __forceinline__ float warp_max_positive(float v) {
#if __CUDA_ARCH__ >= 800
  u32 largest;
  asm("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(largest) : "r"(__float_as_uint(v)));
  return __uint_as_float(largest);
#else
  return warp_max(v);
#endif
}

// Within 2^-22, so that the largest value still rounds to LARGEST_VALUE.
__device__ __forceinline__ float reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

// Four columns of a lane as digits: byte i of each word belongs to column i. Returns their sum.
__device__ __forceinline__ int pack_digits(float4 v, float inverse, u32& high, u32& low) {
  const int q0 = __float2int_rn(v.x * inverse), q1 = __float2int_rn(v.y * inverse);
  const int q2 = __float2int_rn(v.z * inverse), q3 = __float2int_rn(v.w * inverse);
  // The low digit is the low byte as it is; the high one is the next byte once the low one is rounded away.
  low = __byte_perm(__byte_perm(q0, q1, 0x0040), __byte_perm(q2, q3, 0x0040), 0x5410);
  high = __byte_perm(__byte_perm(q0 + 128, q1 + 128, 0x0051), __byte_perm(q2 + 128, q3 + 128, 0x0051), 0x5410);
  return q0 + q1 + q2 + q3;
}

__device__ __forceinline__ void write_x(const Shared& shared, int tile, int token, float4 v, int lane) {
  const float largest =
      warp_max_positive(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  const float inverse = largest > 1e-30f ? LARGEST_VALUE * reciprocal(largest) : 0.0f;
  const float scale = largest * (1.0f / LARGEST_VALUE);
  u32 high, low;
  int sum = pack_digits(v, inverse, high, low);
  u8* to = shared.digits + tile * X_TILE_BYTES + (lane / 4 % 2 * TOKENS + token) * 128 + lane / 8 * 16 + lane % 4 * 4;
  *(u32*)to = high;
  *(u32*)(to + 64) = low;
  if (lane == 0) shared.scales[tile * TOKENS + token] = scale * Weights::CODE_UNIT;
  if (MINIMA) {
#pragma unroll
    for (int step = 1; step < GROUP / 4; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane % (GROUP / 4) == 0)
      shared.sums[(tile * TOKENS + token) * GROUPS + lane / (GROUP / 4)] = (float)sum * scale;
  }
}

// Quantizes tiles first .. first + count - 1 of all tokens. RMSNorm scales a token as a whole: its squares are summed
// here and 1 / rms multiplies the result.
template <bool NORM, int AT_ONCE>
__device__ __forceinline__ void quantize(const MatvecArguments& a, const Shared& shared, int first, int count, int warp,
                                         int lane) {
  const int pairs = count * a.tokens;
  for (int base = warp; base < pairs; base += WARPS * AT_ONCE) {
    float4 x[AT_ONCE], weight[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int pair = base + i * WARPS, token = TOKENS == 1 ? 0 : pair / count;
      const int column = (first + pair - token * count) * TILE_COLUMNS + lane * 4;
      const bool there = pair < pairs && column < a.columns;
      x[i] = there ? load_fresh(a.x + (i64)token * a.columns + column) : make_float4(0, 0, 0, 0);
      if (NORM) weight[i] = there ? *(const float4*)(a.norm + column) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int pair = base + i * WARPS, token = TOKENS == 1 ? 0 : pair / count, tile = pair - token * count;
      if (pair >= pairs) break;
      if (NORM) {
        const float squares = warp_sum(
            __fmaf_rn(x[i].x, x[i].x, __fmaf_rn(x[i].y, x[i].y, __fmaf_rn(x[i].z, x[i].z, x[i].w * x[i].w))));
        if (lane == 0) shared.squares[(first + tile) * TOKENS + token] = squares;
        x[i].x *= weight[i].x, x[i].y *= weight[i].y, x[i].z *= weight[i].z, x[i].w *= weight[i].w;
      }
      write_x(shared, tile, token, x[i], lane);
    }
  }
}

// What a block and a warp of it have to do.
struct Share {
  int first_unit, unit_count;  // of this block
  int unit, slice;             // where this warp begins: unit of a batch, slice of a window
};

__device__ __forceinline__ int units_of_batch(const MatvecArguments& a, const Share& s, int batch) {
  return min(a.batch_units, s.unit_count - batch * a.batch_units);
}
__device__ __forceinline__ int parts_of(const MatvecArguments& a) { return a.epilogue == GATED ? 2 : 1; }

// The tiles of one warp in order, for copies ahead: over batches, windows of K, parts (gate, up), units, its slice.
struct Walk {
  const u8* tile;  // this lane's part of it
  int left, length, skip;  // tiles of the slice to come; all of them; bytes from its end to the next unit's slice
  int unit, units;         // of this batch; units is 0 at the end of all
  int batch, window, part;
};

// Goes to the next part that has work for this warp.
__device__ __forceinline__ void next_part(const MatvecArguments& a, const Share& s, Walk& w, int lane) {
  for (;;) {
    if (++w.part == parts_of(a)) {
      w.part = 0;
      if (++w.window == a.windows) w.window = 0, w.batch++;
    }
    const int slice = w.window * a.window_slices + s.slice;
    w.unit = s.unit;
    w.units = max(0, units_of_batch(a, s, w.batch));
    if (!w.units) return;
    if (slice < a.slices && w.unit < w.units) {
      const int row_tile = s.first_unit + w.batch * a.batch_units + w.unit + w.part * a.units;
      const int first = slice * a.slice_tiles;
      w.left = w.length = min(a.slice_tiles, a.tiles - first);
      w.skip = (a.units_at_once * a.tiles - w.length) * Weights::BYTES;
      w.tile = a.weights + ((i64)row_tile * a.tiles + first) * Weights::BYTES + lane * 16;
      return;
    }
  }
}

__device__ __forceinline__ void advance(const MatvecArguments& a, const Share& s, Walk& w, int lane) {
  w.tile += Weights::BYTES;
  if (--w.left == 0) {
    w.left = w.length;
    w.tile += w.skip;
    w.unit += a.units_at_once;
    if (w.unit >= w.units) next_part(a, s, w, lane);
  }
}

// Adds a tile's product with x to the sums of rows g and g + 8.
__device__ __forceinline__ void multiply(const u8* tile, const u8* x, const float* scales, const float* sums, int lane,
                                         float (&acc)[SETS][2]) {
  const int g = lane / 4, t = lane % 4, group = t % GROUPS;
  LaneCodes<BITS> codes;
  codes.read_shared(tile, lane);
  const u16* weight_scales = (const u16*)(tile + Weights::CODE_BYTES) + group * TILE_ROWS + g;
  const float scale_0 = half_to_float(weight_scales[0]), scale_1 = half_to_float(weight_scales[8]);
  u32 operands[4][4];
  codes.template decode<0>(operands[0]);
  codes.template decode<1>(operands[1]);
  codes.template decode<2>(operands[2]);
  codes.template decode<3>(operands[3]);
#pragma unroll
  for (int set = 0; set < SETS; set++) {
    if (SETS > 2 || BITS == 8) asm volatile("" ::: "memory");  // else x of all sets is loaded at once, and spilled
    const uint4 b = *(const uint4*)(x + set * SET_TOKENS * 128);
    const uint4 b_next = *(const uint4*)(x + (TOKENS + set * SET_TOKENS) * 128);
    int c[4] = {};
    mma_i8(c, operands[0], b.x, b.y);
    mma_i8(c, operands[1], b.z, b.w);
    mma_i8(c, operands[2], b_next.x, b_next.y);
    mma_i8(c, operands[3], b_next.z, b_next.w);
    const int token = set * SET_TOKENS + t / GROUPS % USED_TOKENS;
    const float x_scale = scales[token];
    acc[set][0] = __fmaf_rn((float)(c[0] * 256 + c[1]), __fmul_rn(scale_0, x_scale), acc[set][0]);
    acc[set][1] = __fmaf_rn((float)(c[2] * 256 + c[3]), __fmul_rn(scale_1, x_scale), acc[set][1]);
    if (MINIMA) {
      const float sum = sums[token * GROUPS + group];
      const u16* minima = weight_scales + GROUPS * TILE_ROWS;
      acc[set][0] = __fmaf_rn(half_to_float(minima[0]), sum, acc[set][0]);
      acc[set][1] = __fmaf_rn(half_to_float(minima[8]), sum, acc[set][1]);
    }
  }
}

// Writes a warp's sums over its slice to (token, 16 rows).
__device__ __forceinline__ void write_partials(float* partials, float (&acc)[SETS][2], int lane) {
  const int g = lane / 4, t = lane % 4;
#pragma unroll
  for (int set = 0; set < SETS; set++) {
#pragma unroll
    for (int step = 1; step < GROUPS; step *= 2) {
      acc[set][0] = __fadd_rn(acc[set][0], __shfl_xor_sync(0xffffffffu, acc[set][0], step));
      acc[set][1] = __fadd_rn(acc[set][1], __shfl_xor_sync(0xffffffffu, acc[set][1], step));
    }
    if (t % GROUPS == 0 && t / GROUPS < USED_TOKENS) {
      float* to = partials + (set * SET_TOKENS + t / GROUPS) * TILE_ROWS + g;
      to[0] = acc[set][0];
      to[8] = acc[set][1];
    }
  }
}

__device__ __forceinline__ float add_slices(const float* partials, int count, float sum) {
#pragma unroll 8
  for (int i = 0; i < count; i++) sum = __fadd_rn(sum, partials[i * TOKENS * TILE_ROWS]);
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
  extern __shared__ __align__(128) u8 memory[];
  let_next_start();
  STAMP(0);
  const int lane = threadIdx.x % WARP, warp = __shfl_sync(0xffffffffu, threadIdx.x / WARP, 0);

  Share share;
  const u32 even = (u32)a.units / gridDim.x, more = (u32)a.units % gridDim.x;  // the first `more` blocks take one more
  share.first_unit = blockIdx.x * even + min(blockIdx.x, more);
  share.unit_count = even + (blockIdx.x < more);
  share.unit = warp / a.window_slices;
  share.slice = share.unit < a.units_at_once ? warp - share.unit * a.window_slices : a.slices;  // idle: no such slice

  Shared shared;
  const int window_tiles = a.window_slices * a.slice_tiles;
  u8* free = memory + WARPS * Ring::RING_BYTES;
  shared.digits = free, free += window_tiles * X_TILE_BYTES;
  shared.zeros = free, free += GROUPS > 1 ? X_TILE_BYTES : 0;
  shared.scales = (float*)free, free += window_tiles * TOKENS * 4;
  shared.sums = (float*)free, free += MINIMA ? window_tiles * TOKENS * GROUPS * 4 : 0;
  shared.squares = (float*)free, free += a.norm ? a.tiles * TOKENS * 4 : 0;
  shared.inverse_rms = (float*)free, free += TOKENS * 4;
  shared.partials = (float*)free;

  Ring ring;
  ring.open(memory + warp * Ring::RING_BYTES);
  Walk ahead;
  ahead.batch = ahead.window = 0, ahead.part = -1;
  next_part(a, share, ahead, lane);
#pragma unroll 1
  for (int i = 0; i < Ring::AHEAD; i++) {
    ring.start(i * Weights::BYTES, ahead.tile, ahead.units > 0, lane);
    if (ahead.units > 0) advance(a, share, ahead, lane);
  }
  if (a.norm)
    for (int i = threadIdx.x * 32; i < a.columns; i += THREADS * 32) fetch_to_l2(a.norm + i);
  if (GROUPS > 1)
    for (int i = threadIdx.x; i < X_TILE_BYTES / 4; i += THREADS) ((u32*)shared.zeros)[i] = 0;

  // This lane's operand b: x of its own group of columns, zeros for the others.
  const int g = lane / 4, t = lane % 4;
  const bool own = t * GROUPS / 4 == g / 2 % GROUPS;
  const u8* b = own ? shared.digits + g / (2 * GROUPS) % USED_TOKENS * 128 + g % 2 * 64 + t * 16 : shared.zeros;
  const int b_stride = own ? X_TILE_BYTES : 0;

#ifdef PROFILE
  const float* bias = nullptr;
#else
  const float* bias = a.bias;
#endif

  // This thread's output of each batch.
  const int row = threadIdx.x % TILE_ROWS, token = threadIdx.x / TILE_ROWS % TOKENS;
  const int unit_in_batch = threadIdx.x / (TILE_ROWS * TOKENS);
  const bool gated = a.epilogue == GATED;
  const int parts = parts_of(a);
  const int out_rows = gated ? a.units * TILE_ROWS : a.rows;
  const int item_floats = a.window_slices * TOKENS * TILE_ROWS;
  const int buffer_floats = a.batch_units * parts * item_floats;

  STAMP(1);
  wait_for_previous();
  STAMP(2);

  int buffer = 0;
  for (int batch = 0; batch * a.batch_units < share.unit_count; batch++) {
    const int out_row = (share.first_unit + batch * a.batch_units + unit_in_batch) * TILE_ROWS + row;
    const bool writes = unit_in_batch < min(a.batch_units, share.unit_count - batch * a.batch_units) &&
                        token < a.tokens && out_row < out_rows;
    const i64 out_index = (i64)token * out_rows + out_row;
    float first = 0, second = 0, added = 0;
    if (writes) {  // early: memory answers while the weights are multiplied
      if (a.epilogue == ADD) added = load_fresh_1(a.residual + out_index);
      if (bias && a.epilogue != GATED) added = __fadd_rn(added, bias[out_row]);
    }
    for (int window = 0; window < a.windows; window++) {
      const int first_slice = window * a.window_slices, first_tile = first_slice * a.slice_tiles;
      const int slices = min(a.window_slices, a.slices - first_slice);
      if (batch == 0 || a.windows > 1) {
        const int count = min(window_tiles, a.tiles - first_tile);
        if (a.norm) quantize<true, TOKENS == 1 ? 4 : 2>(a, shared, first_tile, count, warp, lane);
        else quantize<false, TOKENS == 1 ? 8 : 4>(a, shared, first_tile, count, warp, lane);
        __syncthreads();
        STAMP(3);
        if (a.norm && batch == 0 && window == a.windows - 1 && warp < a.tokens) {
          float sum = 0;
          for (int i = lane; i < a.tiles; i += WARP) sum += shared.squares[i * TOKENS + warp];
          sum = warp_sum(sum);
          if (lane == 0) shared.inverse_rms[warp] = 1.0f / sqrtf(sum / (float)a.columns + a.eps);
        }
      }
      float* partials = shared.partials + buffer * buffer_floats;
      if (share.slice < slices) {
        const int start = share.slice * a.slice_tiles;  // in the window
        const int count = min(a.slice_tiles, a.tiles - first_tile - start);
        const int units = units_of_batch(a, share, batch);
        for (int part = 0; part < parts; part++) {
          float* to = partials + (share.unit * parts + part) * item_floats + share.slice * TOKENS * TILE_ROWS;
          for (int unit = share.unit; unit < units; unit += a.units_at_once) {
            float acc[SETS][2] = {};
            const u8* x = b + start * b_stride;
            const float* scales = shared.scales + start * TOKENS;
            const float* sums = shared.sums + start * TOKENS * GROUPS;
            for (int tile = 0; tile < count; tile++) {
              const u8* weights = ring.take();
              ring.start(ring.before, ahead.tile, ahead.units > 0, lane);
              if (ahead.units > 0) advance(a, share, ahead, lane);
              multiply(weights, x, scales, sums, lane, acc);
              ring.step();
              x += b_stride, scales += TOKENS, sums += TOKENS * GROUPS;
            }
            write_partials(to, acc, lane);
            to += a.units_at_once * parts * item_floats;
          }
        }
      }
      STAMP(4);
      __syncthreads();
      STAMP(5);
      if (writes) {
        const float* from = partials + unit_in_batch * parts * item_floats + token * TILE_ROWS + row;
        first = add_slices(from, slices, first);
        if (gated) second = add_slices(from + item_floats, slices, second);
      }
      buffer ^= 1;
    }
    if (!writes) continue;
    if (a.norm) {
      first = __fmul_rn(first, shared.inverse_rms[token]);
      second = __fmul_rn(second, shared.inverse_rms[token]);
    }
    if (a.epilogue == GATED) {
      if (bias) first = __fadd_rn(first, bias[out_row]), second = __fadd_rn(second, bias[out_rows + out_row]);
      first = first / (1.0f + expf(-first)) * second;
    } else {
      first = __fadd_rn(first, added);
    }
    a.out[out_index] = first;
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
