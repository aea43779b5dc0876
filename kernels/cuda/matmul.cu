// Computes: out = activations x W^T (+ bias), stored, added to a residual, or silu(gate) * up where W stacks gate over up.
// Arguments: weights, high, low, scales, sums, bias, residual, out, tokens, token_stride, rows, columns, epilogue
// Requires: tokens >= 1; rows >= 1; columns >= 1; token_stride % 128 == 0; token_stride >= tokens; 0 <= epilogue <= 2;
//   epilogue != 2 or (rows % 32 == 0 and ROW_TILES == 2); epilogue != 1 or residual != 0
// Launch: (blocks of rows, blocks of tokens) blocks of 32 * ROW_WARPS * TOKEN_WARPS threads, STAGES * STAGE_TILES * PART_BYTES
//   of shared memory; a block takes 16 * ROW_WARPS * ROW_TILES rows, 8 * TOKEN_WARPS * TOKEN_TILES tokens.
// Numerics: exact int32 sums over a group of weights, float32 over groups in the order of K: a token's result depends
//   neither on the other tokens nor on the shape of a block. DIGITS = 1 takes activations rounded to 8 bits.
// Oracle: the float64 product with QuantizedMatrix.dequantize of kernels/quant_format.py
// Measured: see the docstring of kernels/matmul.py
// Source: the tile format of kernels/quant_format.py; a multistage pipeline of asynchronous copies, after CUTLASS' design

// BITS, GROUP, MINIMA: the weights' format. ROW_WARPS, ROW_TILES, TOKEN_WARPS, TOKEN_TILES: the shape of a block. STAGES: of
// the pipeline, each of STAGE_TILES tiles of 128 columns.
// columns is the number before padding, tokens' layout is quantize_rows.cu's. out and residual are float32 (tokens, rows),
// with epilogue 2 (tokens, rows / 2); residual may be out; bias float32 (rows) or 0.
//
// A warp owns ROW_TILES times 16 rows (with epilogue 2 a row tile of gate and the same one of up) and TOKEN_TILES times 8
// tokens.
// Step j of the tensor cores takes columns 32 j..32 j + 31 of a tile, so that no sum crosses a group: lane 4 g + t takes
// columns 32 j + 8 t..+7, which lie in the part of lane 4 g + j of the tile. All of a step's operands of activations are
// 8 consecutive bytes. 16-byte parts of both change places in shared memory so that no two lanes meet in a bank.
#include "tile.cuh"

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

typedef Tile<BITS, GROUP, MINIMA> Weights;

constexpr int BLOCK_TILES = ROW_TILES * ROW_WARPS;
constexpr int BLOCK_TOKENS = 8 * TOKEN_WARPS * TOKEN_TILES;
constexpr int THREADS = WARP * ROW_WARPS * TOKEN_WARPS;
// 16-byte parts of a tile: those that change places in shared memory, and the others, in one tile and in the block's.
constexpr int MOVED = BITS == 3 ? 32 : Weights::CODE_BYTES / 16;  // not the top bits of 3-bit codes, nor the scales
constexpr int OTHERS = Weights::BYTES / 16 - MOVED;
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
constexpr int PARTS = STAGES * STAGE_TILES;

constexpr int GROUPS = Weights::GROUPS;
constexpr int STEPS = 4 / GROUPS;  // of the tensor cores in a group

// An integer n within 2^22, added to the bits of 1.5 * 2^31, makes the float 1.5 * 2^31 + 256 n: no conversion. The sums of
// a group, at most 128 * 128 * 128 = 2^21, start there. Both conversions leave 1.5 * 2^31 of the high digit's sum and a
// 256th of that of the low one's: BOTH_STARTS, which is taken off without rounding.
#define START_BITS 0x4f400000
#define START 3221225472.0f
#define BOTH_STARTS 3233808384.0f

__device__ constexpr int copies(int chunks) { return (chunks + THREADS - 1) / THREADS; }

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
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
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
      const u32 up = step < 2 ? (step ? upper.y : upper.x) : (step == 2 ? upper.z : upper.w);
      const u32 down = step < 2 ? (step ? lower.y : lower.x) : (step == 2 ? lower.z : lower.w);
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

struct Pipeline {
  const MatmulArguments& a;
  u32 shared;  // address of the parts
  u32 k_tiles, token0;
  // What this thread copies of K tile 0, in units of 16 bytes, and where the first of them goes in a part.
  u32 moved[copies(BLOCK_MOVED)], others[copies(BLOCK_OTHERS)], moved_to;

  // A row tile of the block; the last one again where there is none.
  __device__ __forceinline__ u32 row_tile(u32 tile) const {
    const u32 tiles = (a.rows + TILE_ROWS - 1) / TILE_ROWS, half = tiles / 2;
    if (ROW_TILES == 2 && a.epilogue == GATED)
      return min(blockIdx.x * ROW_WARPS + tile / 2, half - 1) + tile % 2 * half;
    return min(blockIdx.x * BLOCK_TILES + tile, tiles - 1);
  }

  __device__ __forceinline__ Pipeline(const MatmulArguments& arguments, const void* parts)
      : a(arguments), shared(shared_address(parts)) {
    static_assert(THREADS % MOVED == 0, "a thread copies the same part of several tiles");
    const u32 thread = threadIdx.x;
    k_tiles = (a.columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    token0 = blockIdx.y * BLOCK_TOKENS;
    moved_to = thread / MOVED * Weights::BYTES + placed(thread % MOVED) * 16;
    const u32 row_chunks = k_tiles * (Weights::BYTES / 16);
#pragma unroll
    for (int i = 0; i < copies(BLOCK_MOVED); i++)
      moved[i] = row_tile((thread + i * THREADS) / MOVED) * row_chunks + thread % MOVED;
#pragma unroll
    for (int i = 0; i < copies(BLOCK_OTHERS); i++)
      others[i] = row_tile((thread + i * THREADS) / OTHERS) * row_chunks + MOVED + (thread + i * THREADS) % OTHERS;
  }

  __device__ __forceinline__ void load_weights(u32 k, u32 part) const {
    const u32 to = shared + part * PART_BYTES;
    const uint4* from = (const uint4*)a.weights + (u64)k * (Weights::BYTES / 16);
#pragma unroll
    for (int i = 0; i < copies(BLOCK_MOVED); i++)
      if (BLOCK_MOVED % THREADS == 0 || threadIdx.x + i * THREADS < BLOCK_MOVED)
        copy_16_to(to + moved_to + i * (THREADS / MOVED * Weights::BYTES), from + moved[i]);
#pragma unroll
    for (int i = 0; i < copies(BLOCK_OTHERS); i++) {
      const u32 at = threadIdx.x + i * THREADS;
      if (BLOCK_OTHERS % THREADS == 0 || at < BLOCK_OTHERS)
        copy_16_to(to + at / OTHERS * Weights::BYTES + (MOVED + at % OTHERS) * 16, from + others[i]);
    }
  }

  __device__ __forceinline__ void load_activations(u32 k, u32 part) const {
    const u32 to = shared + part * PART_BYTES + threadIdx.x * 16;
    const u64 at = ((u64)k * a.token_stride + token0) * (TILE_COLUMNS / 16) + threadIdx.x;
    const uint4 *high = (const uint4*)a.high + at, *low = (const uint4*)a.low + at;
#pragma unroll
    for (int i = 0; i < copies(TOKEN_CHUNKS); i++)
      if (TOKEN_CHUNKS % THREADS == 0 || threadIdx.x + i * THREADS < TOKEN_CHUNKS) {
        copy_16_to(to + HIGH_AT + i * THREADS * 16, high + i * THREADS);
        if (DIGITS == 2) copy_16_to(to + LOW_AT + i * THREADS * 16, low + i * THREADS);
      }
    if (threadIdx.x < BLOCK_TOKENS / 4)
      copy_16_to(to + SCALES_AT, (const uint4*)(a.scales + (u64)k * a.token_stride + token0) + threadIdx.x);
    if (MINIMA)
#pragma unroll
      for (int i = 0; i < copies(BLOCK_TOKENS); i++) {
        const u32 number = threadIdx.x + i * THREADS, row = 4 * k + number / (BLOCK_TOKENS / 4);
        if (BLOCK_TOKENS % THREADS == 0 || number < BLOCK_TOKENS)
          copy_16_to(to + SUMS_AT + i * THREADS * 16,
                     (const uint4*)(a.sums + (u64)row * a.token_stride + token0) + number % (BLOCK_TOKENS / 4));
      }
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

  __device__ __forceinline__ WarpWeights(const u8* part, u32 row_warp, int g, int t) {
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
__device__ __forceinline__ void store_tile(const MatmulArguments& a, const float (&value)[4], u32 row, u32 token, u32 stride) {
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
  const Pipeline pipeline(a, shared);
  const u32 k_tiles = pipeline.k_tiles;
  constexpr u32 AHEAD = (STAGES - 1) * STAGE_TILES;
#pragma unroll
  for (u32 k = 0; k < AHEAD; k++)
    if (k < k_tiles) pipeline.load_weights(k, k);
  wait_for_previous();
#pragma unroll
  for (u32 k = 0; k < AHEAD; k++) {
    if (k < k_tiles) pipeline.load_activations(k, k);
    if ((k + 1) % STAGE_TILES == 0) end_copy_group();
  }

  const u32 warp = threadIdx.x / WARP, row_warp = warp % ROW_WARPS, token_warp = warp / ROW_WARPS;
  const int g = threadIdx.x % WARP / 4, t = threadIdx.x % 4;
  WarpTile sums = {};
  u32 part = 0, free_part = AHEAD;
  for (u32 k = 0; k < k_tiles; k += STAGE_TILES) {
    wait_for_copies<STAGES - 2>();
    __syncthreads();
    const u8* tiles = (const u8*)shared + part * PART_BYTES;
    const WarpWeights first(tiles, row_warp, g, t);  // its latency hides behind the copies' instructions
#pragma unroll
    for (u32 i = 0; i < STAGE_TILES; i++)
      if (k + AHEAD + i < k_tiles) {
        pipeline.load_weights(k + AHEAD + i, free_part + i);
        pipeline.load_activations(k + AHEAD + i, free_part + i);
      }
    end_copy_group();
    if (k + AHEAD >= k_tiles) let_next_start();
    if (STAGE_TILES == 1 || k + STAGE_TILES <= k_tiles) {
      sums.add_tile(first, tiles, token_warp, g, t);
#pragma unroll
      for (u32 i = 1; i < STAGE_TILES; i++) {
        const u8* next = tiles + i * PART_BYTES;
        sums.add_tile(WarpWeights(next, row_warp, g, t), next, token_warp, g, t);
      }
    } else {
      for (u32 i = k; i < k_tiles; i++, tiles += PART_BYTES)
        sums.add_tile(WarpWeights(tiles, row_warp, g, t), tiles, token_warp, g, t);
    }
    part = part + STAGE_TILES == PARTS ? 0 : part + STAGE_TILES;
    free_part = free_part + STAGE_TILES == PARTS ? 0 : free_part + STAGE_TILES;
  }

  float bias[ROW_TILES][2] = {};
#pragma unroll
  for (int i = 0; i < 2 * ROW_TILES; i++) {
    const u32 row = pipeline.row_tile(row_warp * ROW_TILES + i / 2) * TILE_ROWS + g + 8 * (i % 2);
    if (a.bias && row < a.rows) bias[i / 2][i % 2] = a.bias[row];
  }
  const u32 warp_row = (blockIdx.x * ROW_WARPS + row_warp) * TILE_ROWS;  // of gate and up; that of others in row tiles
#pragma unroll
  for (int n = 0; n < TOKEN_TILES; n++) {
    const u32 token = pipeline.token0 + (token_warp * TOKEN_TILES + n) * 8 + 2 * t;
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
