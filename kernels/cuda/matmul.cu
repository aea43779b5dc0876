// Computes: out = activations x W^T (+ bias), stored, added to a residual, or silu(gate) * up where W stacks both.
// Arguments: weights, high, low, scales, sums, bias, residual, out, tokens, token_stride, rows, columns, epilogue
// Requires: tokens >= 1; rows >= 1; columns >= 1; token_stride % 128 == 0; token_stride >= tokens; 0 <= epilogue <= 2;
//   epilogue != 2 or (rows % 32 == 0 and ROW_TILES == 2); epilogue != 1 or residual != 0
// Launch: (blocks of rows, blocks of tokens) blocks of 32 * ROW_WARPS * TOKEN_WARPS threads, each for
//   16 * ROW_WARPS * ROW_TILES rows and 8 * TOKEN_WARPS * TOKEN_TILES tokens, with STAGES * STAGE_TILES * PART_BYTES of
//   shared memory.
// Numerics: exact int32 sums over a group of weights, float32 over groups in the order of K: a token's result depends
//   neither on the other tokens nor on the shape of a block. DIGITS = 1 takes activations rounded to 8 bits.
// Oracle: the float64 product with QuantizedMatrix.dequantize of kernels/weights/quant_format.py
// Measured: see the docstring of kernels/launch/matmul.py
// Source: own; a pipeline of asynchronous copies through shared memory, as CUTLASS describes it

// BITS, GROUP, MINIMA: the weights' format. ROW_WARPS, ROW_TILES, TOKEN_WARPS, TOKEN_TILES: the shape of a block.
// STAGES: of the pipeline, each of STAGE_TILES tiles of 128 columns. `columns` is the number before padding;
// activations lie as quantize_rows.cu writes them. out and residual are float32 (tokens, rows), with epilogue 2
// (tokens, rows / 2); residual may be out; bias is float32 (rows) or 0.
//
// A warp owns ROW_TILES times 16 rows (with epilogue 2 a row tile of gate and the same one of up) and TOKEN_TILES
// times 8 tokens. Step j of the tensor cores takes columns 32 j..32 j + 31 of a tile, so that no sum crosses a group:
// lane 4 g + t takes columns 32 j + 8 t..+7, which lie in the part of lane 4 g + j of the tile. All of a step's
// operands of activations are 8 consecutive bytes. 16-byte parts of both change places in shared memory so that no
// two lanes meet in a bank.
#include "tile_operands.cuh"

struct MatmulArguments {
  const u8* weights;
  const i8* high;
  const i8* low;
  const float* scales;
  const float* sums;
  const float* bias;
  const float* residual;
  float* out;
  u32 tokens, token_stride, rows, columns, epilogue;
};

#define STORE 0
#define ADD 1
#define GATED 2

constexpr int BLOCK_TILES = ROW_TILES * ROW_WARPS;
constexpr int BLOCK_TOKENS = 8 * TOKEN_WARPS * TOKEN_TILES;
constexpr int THREADS = WARP * ROW_WARPS * TOKEN_WARPS;
constexpr int BLOCK_MOVED = BLOCK_TILES * MOVED;
constexpr int BLOCK_OTHERS = BLOCK_TILES * OTHERS;
constexpr int TOKEN_CHUNKS = BLOCK_TOKENS * TILE_COLUMNS / 16;  // of one digit
constexpr int SUM_ROWS = MINIMA ? 4 : 0;

// What 128 columns take of a stage: weights, high digits, low digits, scales of tokens, their sums.
constexpr int HIGH_AT = BLOCK_TILES * Weights::BYTES;
constexpr int LOW_AT = HIGH_AT + TOKEN_CHUNKS * 16;
constexpr int SCALES_AT = LOW_AT + (DIGITS == 2 ? TOKEN_CHUNKS * 16 : 0);
constexpr int SUMS_AT = SCALES_AT + BLOCK_TOKENS * 4;
constexpr int PART_BYTES = SUMS_AT + SUM_ROWS * BLOCK_TOKENS * 4;

constexpr int GROUPS = Weights::GROUPS;
constexpr int STEPS = 4 / GROUPS;  // of the tensor cores in a group

// An integer n within 2^22, added to the bits of 1.5 * 2^31, makes the float 1.5 * 2^31 + 256 n: no conversion. The
// sums of a group, at most 128 * 128 * 128 = 2^21, start there. That leaves 1.5 * 2^31 in the high digits' sum and a
// 256th of it in the low ones': BOTH_STARTS, which is taken off without rounding.
#define START_BITS 0x4f400000
#define START 3221225472.0f
#define BOTH_STARTS 3233808384.0f

__device__ constexpr int copies(int chunks) { return (chunks + THREADS - 1) / THREADS; }

// mma_i8 that starts at START_BITS instead of c.
__device__ __forceinline__ void mma_i8_first(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(START_BITS));
#else
  c[0] = c[1] = c[2] = c[3] = START_BITS;
  mma_i8(c, a, b0, b1);
#endif
}

// The sums of a group of columns of 16 rows and 8 tokens, biased by START_BITS.
__device__ __forceinline__ void multiply_group(int (&c)[4], const u32 (&a)[4][4], const uint4 (&b)[2], int group) {
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    const int step = group * STEPS + i;
    const uint4 v = b[step / 2];
    const u32 b0 = step % 2 ? v.z : v.x, b1 = step % 2 ? v.w : v.y;
    if (i == 0)
      mma_i8_first(c, a[step], b0, b1);
    else
      mma_i8(c, a[step], b0, b1);
  }
}

// A row tile of the block; the last one again where there is none.
__device__ __forceinline__ u32 row_tile(const MatmulArguments& a, u32 tile) {
  const u32 tiles = (a.rows + TILE_ROWS - 1) / TILE_ROWS, half = tiles / 2;
  if (ROW_TILES == 2 && a.epilogue == GATED) return min(blockIdx.x * ROW_WARPS + tile / 2, half - 1) + tile % 2 * half;
  return min(blockIdx.x * BLOCK_TILES + tile, tiles - 1);
}

// The copies of one thread, tile after tile along K.
struct Pipeline {
  const uint4 *weights, *high, *low, *scales, *sums;  // of the next tile; where this thread's parts of it begin
  u32 tile_stride, scales_stride;                     // 16-byte parts of activations, of scales to the next tile
  u32 moved[copies(BLOCK_MOVED)], others[copies(BLOCK_OTHERS)];  // this thread's parts of the block's weights
  u32 moved_to;                                       // where the first of them goes

  __device__ __forceinline__ Pipeline(const MatmulArguments& a, u32 k_tiles, u32 token0) {
    static_assert(THREADS % MOVED == 0, "a thread copies the same part of several tiles");
    const u32 thread = threadIdx.x, row_chunks = k_tiles * (Weights::BYTES / 16);
    weights = (const uint4*)a.weights;
    high = (const uint4*)a.high + (u64)token0 * (TILE_COLUMNS / 16) + thread;
    low = (const uint4*)a.low + (u64)token0 * (TILE_COLUMNS / 16) + thread;
    scales = (const uint4*)(a.scales + token0) + thread;
    sums = (const uint4*)(a.sums + token0);
    tile_stride = a.token_stride * (TILE_COLUMNS / 16);
    scales_stride = a.token_stride / 4;
    moved_to = thread / MOVED * Weights::BYTES + placed(thread % MOVED) * 16;
#pragma unroll
    for (int i = 0; i < copies(BLOCK_MOVED); i++)
      moved[i] = row_tile(a, (thread + i * THREADS) / MOVED) * row_chunks + thread % MOVED;
#pragma unroll
    for (int i = 0; i < copies(BLOCK_OTHERS); i++)
      others[i] = row_tile(a, (thread + i * THREADS) / OTHERS) * row_chunks + MOVED + (thread + i * THREADS) % OTHERS;
  }

  // `to` is the address of a part of a stage.
  __device__ __forceinline__ void load_weights(u32 to) {
#pragma unroll
    for (int i = 0; i < copies(BLOCK_MOVED); i++)
      if (BLOCK_MOVED % THREADS == 0 || threadIdx.x + i * THREADS < BLOCK_MOVED)
        copy_16_to(to + moved_to + i * (THREADS / MOVED * Weights::BYTES), weights + moved[i]);
#pragma unroll
    for (int i = 0; i < copies(BLOCK_OTHERS); i++) {
      const u32 at = threadIdx.x + i * THREADS;
      if (BLOCK_OTHERS % THREADS == 0 || at < BLOCK_OTHERS)
        copy_16_to(to + at / OTHERS * Weights::BYTES + (MOVED + at % OTHERS) * 16, weights + others[i]);
    }
    weights += Weights::BYTES / 16;
  }

  __device__ __forceinline__ void load_activations(u32 to) {
    to += threadIdx.x * 16;
#pragma unroll
    for (int i = 0; i < copies(TOKEN_CHUNKS); i++)
      if (TOKEN_CHUNKS % THREADS == 0 || threadIdx.x + i * THREADS < TOKEN_CHUNKS) {
        copy_16_to(to + HIGH_AT + i * THREADS * 16, high + i * THREADS);
        if (DIGITS == 2) copy_16_to(to + LOW_AT + i * THREADS * 16, low + i * THREADS);
      }
    if (threadIdx.x < BLOCK_TOKENS / 4) copy_16_to(to + SCALES_AT, scales);
    if (MINIMA)
#pragma unroll
      for (int i = 0; i < copies(BLOCK_TOKENS); i++) {
        const u32 at = threadIdx.x + i * THREADS;
        if (BLOCK_TOKENS % THREADS == 0 || at < BLOCK_TOKENS)
          copy_16_to(to + SUMS_AT + i * THREADS * 16,
                     sums + (u64)(at / (BLOCK_TOKENS / 4)) * scales_stride + at % (BLOCK_TOKENS / 4));
      }
    high += tile_stride;
    if (DIGITS == 2) low += tile_stride;
    scales += scales_stride;
    if (MINIMA) sums += 4 * (u64)scales_stride;
  }
};

// What one lane needs of a row tile's scales or minima: rows g and g + 8 of each group.
struct RowNumbers {
  float of[GROUPS][2];
  __device__ __forceinline__ void load(const u8* numbers, int g, float unit) {
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      const u16* group = (const u16*)numbers + i * TILE_ROWS + g;
      of[i][0] = half_to_float(group[0]) * unit;
      of[i][1] = half_to_float(group[8]) * unit;
    }
  }
};

// A warp's weights of one tile of columns.
struct WarpWeights {
  u32 a[ROW_TILES][4][4];
  RowNumbers scales[ROW_TILES], minima[ROW_TILES];

  __device__ __forceinline__ void load(const u8* part, u32 row_warp, int g, int t) {
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++) {
      const u8* tile = part + (row_warp * ROW_TILES + r) * Weights::BYTES;
      load_codes(tile, g, t, a[r]);
      scales[r].load(tile + Weights::CODE_BYTES, g, Weights::CODE_UNIT);
      if (MINIMA) minima[r].load(tile + Weights::CODE_BYTES + Weights::SCALE_BYTES, g, 1.0f);
    }
  }
};

// Adds one tile of columns to the sums of a warp: acc[row tile][8 tokens][as mma_i8's c].
struct WarpTile {
  float acc[ROW_TILES][TOKEN_TILES][4];

  __device__ __forceinline__ void add_group(float (&sum)[4], const u32 (&a)[4][4], const uint4 (&high)[2],
                                            const uint4 (&low)[2], int group, const RowNumbers& scales, float2 token) {
    int high_sum[4], low_sum[4];
    multiply_group(high_sum, a, high, group);
    if (DIGITS == 2) multiply_group(low_sum, a, low, group);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      float value = __fadd_rn(__int_as_float(high_sum[e]), DIGITS == 2 ? -BOTH_STARTS : -START);
      if (DIGITS == 2) value = __fmaf_rn(__int_as_float(low_sum[e]), 1.0f / 256.0f, value);
      sum[e] = __fmaf_rn(value, __fmul_rn(scales.of[group][e >> 1], e & 1 ? token.y : token.x), sum[e]);
    }
  }

  __device__ __forceinline__ void add_minima(float (&sum)[4], const u8* sums, int group, const RowNumbers& minima) {
    float2 token = *(const float2*)(sums + group * STEPS * BLOCK_TOKENS * 4);
#pragma unroll
    for (int i = 1; i < STEPS; i++) {
      const float2 more = *(const float2*)(sums + (group * STEPS + i) * BLOCK_TOKENS * 4);
      token.x = __fadd_rn(token.x, more.x);
      token.y = __fadd_rn(token.y, more.y);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) sum[e] = __fmaf_rn(minima.of[group][e >> 1], e & 1 ? token.y : token.x, sum[e]);
  }

  __device__ __forceinline__ void add_tile(const WarpWeights& w, const u8* part, u32 token_warp, int g, int t) {
    const u32 first = token_warp * TOKEN_TILES * 8;
    const u8* digits = part + HIGH_AT + (first + g) * TILE_COLUMNS;
    const int places[2] = {(t ^ (g & 1) << 2) * 16, ((4 + t) ^ (g & 1) << 2) * 16};
#pragma unroll
    for (int n = 0; n < TOKEN_TILES; n++) {
      const u8* of_token = digits + n * 8 * TILE_COLUMNS;
      const uint4 high[2] = {*(const uint4*)(of_token + places[0]), *(const uint4*)(of_token + places[1])};
      uint4 low[2];
      if (DIGITS == 2)
#pragma unroll
        for (int i = 0; i < 2; i++) low[i] = *(const uint4*)(of_token + (LOW_AT - HIGH_AT) + places[i]);
      const u32 pair_at = (first + n * 8 + 2 * t) * 4;
      const float2 token_scale = *(const float2*)(part + SCALES_AT + pair_at);
#pragma unroll
      for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
        for (int group = 0; group < GROUPS; group++) {
          add_group(acc[r][n], w.a[r], high, low, group, w.scales[r], token_scale);
          if (MINIMA) add_minima(acc[r][n], part + SUMS_AT + pair_at, group, w.minima[r]);
        }
    }
  }
};

__device__ __forceinline__ float silu(float x) { return __fdividef(x, 1.0f + __expf(-x)); }

// Writes rows `row` and `row` + 8 of the tile, for `stride` rows of out in all.
__device__ __forceinline__ void store_tile(const MatmulArguments& a, const float (&value)[4], u32 row, u32 token,
                                           u32 stride) {
#pragma unroll
  for (int e = 0; e < 4; e++) {
    const u32 to_row = row + 8 * (e >> 1), to_token = token + (e & 1);
    if (to_row < stride && to_token < a.tokens) {
      const u64 at = (u64)to_token * stride + to_row;
      a.out[at] = a.epilogue == ADD ? __fadd_rn(a.residual[at], value[e]) : value[e];
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM) matmul(const __grid_constant__ MatmulArguments a) {
  extern __shared__ uint4 shared[];
  const u32 k_tiles = (a.columns + TILE_COLUMNS - 1) / TILE_COLUMNS, token0 = blockIdx.y * BLOCK_TOKENS;
  const u32 memory = shared_address(shared);
  constexpr u32 AHEAD = (STAGES - 1) * STAGE_TILES, STAGE_BYTES = STAGE_TILES * PART_BYTES;
  Pipeline pipeline(a, k_tiles, token0);
#pragma unroll
  for (u32 k = 0; k < AHEAD; k++)
    if (k < k_tiles) pipeline.load_weights(memory + k * PART_BYTES);
  wait_for_previous();
#pragma unroll
  for (u32 k = 0; k < AHEAD; k++) {
    if (k < k_tiles) pipeline.load_activations(memory + k * PART_BYTES);
    if ((k + 1) % STAGE_TILES == 0) end_copy_group();
  }

  const u32 warp = threadIdx.x / WARP, row_warp = warp % ROW_WARPS, token_warp = warp / ROW_WARPS;
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
  WarpTile sums = {};
  u32 full = 0, free = AHEAD * PART_BYTES;  // stages, in bytes
  for (u32 k = 0; k < k_tiles; k += STAGE_TILES) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    const u8* tiles = (const u8*)shared + full;
    WarpWeights weights[STAGE_TILES];  // their latency hides behind the copies' instructions
#pragma unroll
    for (u32 i = 0; i < STAGE_TILES; i++) weights[i].load(tiles + i * PART_BYTES, row_warp, g, t);
#pragma unroll
    for (u32 i = 0; i < STAGE_TILES; i++)
      if (k + AHEAD + i < k_tiles) {
        pipeline.load_weights(memory + free + i * PART_BYTES);
        pipeline.load_activations(memory + free + i * PART_BYTES);
      }
    end_copy_group();
    if (k + AHEAD >= k_tiles) let_next_start();
    if (STAGE_TILES == 1 || k + STAGE_TILES <= k_tiles) {
#pragma unroll
      for (u32 i = 0; i < STAGE_TILES; i++) sums.add_tile(weights[i], tiles + i * PART_BYTES, token_warp, g, t);
    } else {  // what was loaded behind the last tile is not used
#pragma unroll
      for (u32 i = 0; i < STAGE_TILES - 1; i++)
        if (k + i < k_tiles) sums.add_tile(weights[i], tiles + i * PART_BYTES, token_warp, g, t);
    }
    full = full + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : full + STAGE_BYTES;
    free = free + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : free + STAGE_BYTES;
  }

  float bias[ROW_TILES][2] = {};
#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++) {
    const u32 row = row_tile(a, row_warp * ROW_TILES + i / 2) * TILE_ROWS + g + 8 * (i % 2);
    if (a.bias && row < a.rows) bias[i / 2][i % 2] = a.bias[row];
  }
  const u32 warp_row = (blockIdx.x * ROW_WARPS + row_warp) * TILE_ROWS;  // of gate and up; that of others in row tiles
#pragma unroll
  for (int n = 0; n < TOKEN_TILES; n++) {
    const u32 token = token0 + (token_warp * TOKEN_TILES + n) * 8 + 2 * t;
#pragma unroll
    for (int r = 0; r < ROW_TILES; r++)
#pragma unroll
      for (int e = 0; e < 4; e++) sums.acc[r][n][e] = __fadd_rn(sums.acc[r][n][e], bias[r][e >> 1]);
    if (ROW_TILES == 2 && a.epilogue == GATED) {
#pragma unroll
      for (int e = 0; e < 4; e++)
        sums.acc[0][n][e] = __fmul_rn(silu(sums.acc[0][n][e]), sums.acc[ROW_TILES - 1][n][e]);
      store_tile(a, sums.acc[0][n], warp_row + g, token, a.rows / 2);
    } else {
#pragma unroll
      for (int r = 0; r < ROW_TILES; r++)
        store_tile(a, sums.acc[r][n], warp_row * ROW_TILES + r * TILE_ROWS + g, token, a.rows);
    }
  }
}
