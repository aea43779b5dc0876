// Computes: y = W x for up to 8 tokens at once, W quantized; x optionally normalized, y with bias, residual or SiLU gate
// Arguments: x, weights, bias, norm, residual, out, eps, rows, columns, tokens, tiles, units, slices, slice_tiles, windows,
//   window_slices, batch_units, units_at_once, block_units, more_blocks, mean
// Requires: 1 <= tokens <= TOKENS; rows >= 1; 4 <= columns <= 65536; columns % 4 == 0; tokens * rows < 2 ** 31;
//   EPILOGUE != 2 or rows % 32 == 0; EPILOGUE != 1 or residual != 0; NORM == 0 or norm != 0; x % 16 == 0;
//   weights % 16 == 0; norm % 16 == 0; out != 0; tiles == (columns + 127) // 128;
//   units == (rows + 15) // 16 // (1 + EPILOGUE // 2); units * (1 + EPILOGUE // 2) * tiles < 2 ** 31;
//   slice_tiles >= 2; slice_tiles % 2 == 0; slices == (tiles + slice_tiles - 1) // slice_tiles; windows == 1 or WINDOWED == 1;
//   windows * window_slices >= slices; 1 <= window_slices <= WARPS; units_at_once == WARPS // window_slices;
//   batch_units >= 1; batch_units * 16 * TOKENS <= 32 * WARPS; block_units >= 0; more_blocks >= 0;
//   block_units + more_blocks >= 1
// Launch: grid: a block for each SM, or for each unit where those are at most half as many; 32 * WARPS threads; shared
//   memory as kernels/matvec.py plans it
// Numerics: x as two int8 digits with a float32 scale for each 128 columns; int32 sums inside a group of weights, float32
//   sums over groups in an order that depends on the columns and the format alone, so a token's result is bitwise the same
//   for every TOKENS, any neighbours and any grid; |sum of a group| <= 128 * 32639 * 128 < 2^30
// Oracle: float64 product of the dequantized weights, tests/gpu/test_matvec.py
// Measured: H200, 2026-11-29, python -m kernels.gpu_benchmark, one token, in GB/s (us). Qwen2.5-3B w4g128: qkv 1,125 (2.4),
//   o 908 (2.4), gate/up 2,907 (8.0), down 2,020 (5.8), head 3,728 (43); all of a token 0.680 ms. 7B, attention w4g128,
//   MLP and head w3g128: 1,792 (4.8), 1,663 (4.0), 2,847 (18.6), 2,407 (11.0), 3,346 (63.6); 1.080 ms. On 16 SMs, in GB/s
//   an SM (a kernel that only reads: 68.8): 31, 32, 47, 48, 44; 38, 39, 27, 34, 28. Between two products of one chain
//   lie 850 clocks of the launch, 1,000 to 3,500 until x is quantized, 300 to 650 for the last sums. Tried without gain:
//   8 warps a block, bulk copies on a barrier, weights of later kernels fetched into L2, copies started later, larger
//   rings. Addressing and register limits were changed after these figures
// Source: own
#include "ring.cuh"
#include "tile.cuh"

#ifndef BITS
#define BITS 4
#define GROUP 128
#define MINIMA 0
#define TOKENS 1
#endif
#ifndef EPILOGUE
#define EPILOGUE 0  // STORE
#define NORM 0      // x is normalized first
#define WINDOWED 0  // x of all of K does not fit into shared memory
#endif
#ifndef WARPS
#define WARPS 16
#define STAGES 2
#endif
#ifndef RESIDENT
// From sm_90 on two blocks share an SM, so that the next kernel can start beside this one; but where a
// lane holds many sums they need more registers than that leaves.
#if __CUDA_ARCH__ >= 900 && TOKENS * (128 / GROUP) < 8
#define RESIDENT 2
#else
#define RESIDENT 1
#endif
#endif

#define THREADS (WARPS * WARP)
#define STORE 0
#define ADD 1
#define GATED 2

struct MatvecArguments {
  const float* x;         // (tokens, columns)
  const u8* weights;      // tiles
  const float* bias;      // (rows,) or null
  const float* norm;      // (columns,): RMSNorm of x with these weights, for NORM
  const float* residual;  // like out, for ADD; may be out itself
  float* out;             // (tokens, rows), GATED: (tokens, rows / 2)
  float eps;
  int rows, columns, tokens;
  // The plan, kernels/matvec.py. K is cut into slices, each summed by one warp; x of a window of slices lies in shared
  // memory at a time; a unit is a row tile, a pair of them where GATED; a batch of units is summed between two barriers.
  int tiles, units;          // along K; along the rows
  int slices, slice_tiles;   // of K; tiles of a slice
  int windows, window_slices;
  int batch_units, units_at_once;  // the latter: WARPS / window_slices
  int block_units, more_blocks;    // units of a block; so many blocks take one more
  float mean;                      // 1 / columns
};

typedef Tile<BITS, GROUP, MINIMA != 0> Weights;
typedef Ring<2 * Weights::BYTES, STAGES> PairRing;  // of two neighbouring tiles along K

constexpr int PARTS = EPILOGUE == GATED ? 2 : 1;
constexpr int GROUPS = Weights::GROUPS;
// The 8 columns of operand b are (token, group, digit): a lane holds x of its own group only and zeros for the others,
// so each column of the product sums one group.
constexpr int SET_TOKENS = 4 / GROUPS;
constexpr int SETS = (TOKENS + SET_TOKENS - 1) / SET_TOKENS;
constexpr int USED_TOKENS = TOKENS < SET_TOKENS ? TOKENS : SET_TOKENS;
constexpr int X_TILE_BYTES = TILE_COLUMNS * 2 * TOKENS;  // [part 2][token][digit 2][t 4][16]
// What a warp loads of x before it quantizes any of it.
constexpr int ROUND_TOKENS = TOKENS < 4 ? TOKENS : 4;
constexpr int ROUND_TILES = TOKENS == 1 ? (NORM ? 2 : 5) : TOKENS == 2 ? (NORM ? 1 : 2) : 1;

// Where it lies in shared memory, behind the rings.
struct Shared {
  u32 digits;    // (window tiles, X_TILE_BYTES)
  u32 zeros;     // X_TILE_BYTES where GROUPS > 1
  u32 squares;   // float (TOKENS, tiles up to a multiple of 4) where NORM: of the elements of x
  u32 scales;    // float (window tiles, TOKENS), times the unit of the codes
  u32 sums;      // float (window tiles, TOKENS, GROUPS) where MINIMA: sum of x
  u32 partials;  // float [2][unit][part][slice][token][16 rows]
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

__device__ __forceinline__ float reciprocal_root(float v) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r * __fmaf_rn(-0.5f * v * r, r, 1.5f);
}

// Added to a float of less than 2^22, leaves the nearest integer in the low bits.
#define ROUNDER 12582912.0f
#define ROUNDER_BITS 0x4b400000

// Four columns of a lane as digits: byte i of each word belongs to column i. Returns their sum.
__device__ __forceinline__ int pack_digits(float4 v, float inverse, u32& high, u32& low) {
  const int q0 = __float_as_int(__fmaf_rn(v.x, inverse, ROUNDER)), q1 = __float_as_int(__fmaf_rn(v.y, inverse, ROUNDER));
  const int q2 = __float_as_int(__fmaf_rn(v.z, inverse, ROUNDER)), q3 = __float_as_int(__fmaf_rn(v.w, inverse, ROUNDER));
  // The low digit is the low byte as it is; the high one is the next byte once the low one is rounded away.
  low = __byte_perm(__byte_perm(q0, q1, 0x0040), __byte_perm(q2, q3, 0x0040), 0x5410);
  high = __byte_perm(__byte_perm(q0 + 128, q1 + 128, 0x0051), __byte_perm(q2 + 128, q3 + 128, 0x0051), 0x5410);
  return (int)((u32)q0 + (u32)q1 + (u32)q2 + (u32)q3 - 4u * ROUNDER_BITS);
}

// Where a lane writes x: its columns 4 lane.. of a tile belong to operand lane t = lane / 8.
__device__ __forceinline__ int lane_place(int lane) {
  return lane / 4 % 2 * TOKENS * 128 + lane / 8 * 16 + lane % 4 * 4;
}

__device__ __forceinline__ void write_x(const Shared& shared, int tile, int token, float4 v, int lane) {
  const float largest =
      warp_max_positive(fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  const float inverse = largest > 1e-30f ? LARGEST_VALUE * reciprocal(largest) : 0.0f;
  const float scale = largest * (1.0f / LARGEST_VALUE);
  u32 high, low;
  int sum = pack_digits(v, inverse, high, low);
  const u32 to = shared.digits + tile * X_TILE_BYTES + token * 128 + lane_place(lane);
  write_shared(to, high);
  write_shared(to + 64, low);
  if (lane == 0) write_shared(shared.scales + (tile * TOKENS + token) * 4, scale * Weights::CODE_UNIT);
  if (MINIMA) {
#pragma unroll
    for (int step = 1; step < GROUP / 4; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane % (GROUP / 4) == 0)
      write_shared(shared.sums + ((tile * TOKENS + token) * GROUPS + lane / (GROUP / 4)) * 4, (float)sum * scale);
  }
}

// A warp's part of x on its way from memory to shared memory: tiles warp, warp + WARPS, ... of a window.
struct Input {
  float4 x[ROUND_TILES][ROUND_TOKENS], norm[ROUND_TILES];

  __device__ __forceinline__ bool has(const MatvecArguments& a, int first, int count, int tile, int i, int lane) const {
    return tile + i * WARPS < count && (first + tile + i * WARPS) * TILE_COLUMNS + lane * 4 < a.columns;
  }
  __device__ __forceinline__ void load_norm(const MatvecArguments& a, int first, int count, int tile, int lane) {
    const float* from = a.norm + (first + tile) * TILE_COLUMNS + lane * 4;
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++)
      norm[i] = has(a, first, count, tile, i, lane) ? *(const float4*)(from + i * WARPS * TILE_COLUMNS)
                                                    : make_float4(0, 0, 0, 0);
  }
  // Where this lane's part begins.
  static __device__ __forceinline__ const float* part(const MatvecArguments& a, int first, int tile, int token, int lane) {
    return a.x + (token * a.columns + (first + tile) * TILE_COLUMNS + lane * 4);
  }
  __device__ __forceinline__ void load(const MatvecArguments& a, const float* from, int first, int count, int tile,
                                       int token, int lane) {
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++)
#pragma unroll
      for (int j = 0; j < ROUND_TOKENS; j++)
        x[i][j] = has(a, first, count, tile, i, lane) && token + j < a.tokens
                      ? load_fresh(from + i * WARPS * TILE_COLUMNS + j * a.columns)
                      : make_float4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void write(const MatvecArguments& a, const Shared& shared, int first, int count, int tile,
                                        int token, int lane) const {
#pragma unroll
    for (int i = 0; i < ROUND_TILES; i++) {
      if (tile + i * WARPS >= count) break;
#pragma unroll
      for (int j = 0; j < ROUND_TOKENS; j++) {
        float4 v = x[i][j];
        float squares = v.w * v.w;
        if (NORM) {
          squares = __fmaf_rn(v.x, v.x, __fmaf_rn(v.y, v.y, __fmaf_rn(v.z, v.z, squares)));
          v.x *= norm[i].x, v.y *= norm[i].y, v.z *= norm[i].z, v.w *= norm[i].w;
        }
        write_x(shared, tile + i * WARPS, token + j, v, lane);
        if (NORM) {
          squares = warp_sum(squares);
          if (lane == 0)
            write_shared(shared.squares + ((token + j) * ((a.tiles + 3) & ~3) + first + tile + i * WARPS) * 4, squares);
        }
      }
    }
  }
};

// Quantizes the rest of a window, of which `input` has loaded the first round. RMSNorm scales a token as a whole: its
// squares are summed here, and 1 / rms multiplies the result.
__device__ __forceinline__ void quantize(const MatvecArguments& a, const Shared& shared, Input& input, int first,
                                         int count, int warp, int lane) {
  int tile = warp, token = 0;
  for (;;) {
    input.write(a, shared, first, count, tile, token, lane);
    token += ROUND_TOKENS;
    if (TOKENS <= ROUND_TOKENS || token >= a.tokens) token = 0, tile += WARPS * ROUND_TILES;
    if (tile >= count) return;
    if (NORM && token == 0) input.load_norm(a, first, count, tile, lane);
    input.load(a, Input::part(a, first, tile, token, lane), first, count, tile, token, lane);
  }
}

// What a block and a warp of it have to do.
struct Share {
  int first_unit, unit_count;  // of this block
  int unit, slice;             // where this warp begins: unit of a batch, slice of a window
};

__device__ __forceinline__ bool is_spare(const MatvecArguments& a) {
  return a.block_units == 0 && (int)blockIdx.x >= a.more_blocks;
}

__device__ __forceinline__ int units_of_batch(const MatvecArguments& a, const Share& s, int batch) {
  return min(a.batch_units, s.unit_count - batch * a.batch_units);
}

// The pairs of tiles of one warp in order, for copies ahead: over batches, windows of K, parts (gate, up), units, its slice.
struct Walk {
  const u8* pair;  // this lane's part of it
  int tiles;       // of the slice, to come
  int length;      // of the slice, in tiles
  int skip;        // bytes from the end of the slice's last pair to the next unit's slice
  int unit, units;  // of this batch; units is 0 at the end of all
  int batch, window, part;
};

// Goes to the next part that has work for this warp.
__device__ __forceinline__ void next_part(const MatvecArguments& a, const Share& s, Walk& w, int lane) {
  for (;;) {
    if (PARTS == 1 || ++w.part == PARTS) {
      w.part = 0;
      if (!WINDOWED || ++w.window == a.windows) w.window = 0, w.batch++;
    }
    const int slice = w.window * a.window_slices + s.slice;
    w.unit = s.unit;
    w.units = max(0, units_of_batch(a, s, w.batch));
    w.tiles = 0;
    if (!w.units) return;
    if (slice < a.slices && w.unit < w.units) {
      const int row_tile = s.first_unit + w.batch * a.batch_units + w.unit + w.part * a.units;
      const int first = slice * a.slice_tiles;
      w.tiles = w.length = min(a.slice_tiles, a.tiles - first);
      w.skip = (a.units_at_once * a.tiles - (w.length + 1 & ~1)) * Weights::BYTES;
      w.pair = a.weights + (i64)(row_tile * a.tiles + first) * Weights::BYTES + lane * 16;
      return;
    }
  }
}

__device__ __forceinline__ void advance(const MatvecArguments& a, const Share& s, Walk& w, int lane) {
  w.pair += 2 * Weights::BYTES;
  w.tiles -= 2;
  if (w.tiles <= 0) {
    w.tiles = w.length;
    w.pair += w.skip;
    w.unit += a.units_at_once;
    if (w.unit >= w.units) next_part(a, s, w, lane);
  }
}

// Starts the copy of the next pair, or tile where a slice ends with one, and goes on.
__device__ __forceinline__ void copy_ahead(const MatvecArguments& a, const Share& s, Walk& w, PairRing& ring, int lane) {
  ring.refill(w.pair, min(w.tiles, 2) * (Weights::BYTES / 16) - lane, lane);
  if (w.tiles) advance(a, s, w, lane);
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
    quantize(a, shared, input, 0, a.tiles, warp, lane);
    __syncthreads();
    STAMP(3);
  }

  float inverse_rms = 1;
  int buffer = 0;
  for (int batch = 0; batch * a.batch_units < share.unit_count; batch++) {
    const int out_row = (share.first_unit + batch * a.batch_units + unit_in_batch) * TILE_ROWS + row;
    const int units = units_of_batch(a, share, batch);
    const bool writes = unit_in_batch < units && token < a.tokens && out_row < out_rows && !is_spare(a);
    float first = 0, second = 0, added = 0;
    if (writes && EPILOGUE == ADD) added = load_fresh_1(a.residual + (token * out_rows + out_row));  // early
    for (int window = 0; window < (WINDOWED ? a.windows : 1); window++) {
      const int first_slice = window * a.window_slices, x_tile = first_slice * a.slice_tiles;
      const int slices = min(a.window_slices, a.slices - first_slice);
      if (WINDOWED) {
        const int count = min(window_tiles, a.tiles - x_tile);
        Input input;
        if (NORM) input.load_norm(a, x_tile, count, warp, lane);
        input.load(a, Input::part(a, x_tile, warp, 0, lane), x_tile, count, warp, 0, lane);
        quantize(a, shared, input, x_tile, count, warp, lane);
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
    if (bias) first = __fadd_rn(first, bias[out_row]);
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
