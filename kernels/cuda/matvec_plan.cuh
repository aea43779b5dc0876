// What the matrix-vector kernel is told, how it is built, and which tiles each warp takes.
#pragma once
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
#if __CUDA_ARCH__ >= 900 && TOKENS < 4 && TOKENS * (128 / GROUP) < 8
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
  // The plan, kernels/launch/matvec.py. K is cut into slices, each summed by one warp; x of a window of slices lies in shared
  // memory at a time; a unit is a row tile, a pair of them where GATED; a batch of units lies between two barriers.
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
constexpr int ROUND_TOKENS = TOKENS < 8 ? TOKENS : 8;
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

// The pairs of tiles of one warp in order, for copies ahead: over batches, windows of K, parts (gate, up), units, along
// its slice.
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
__device__ __forceinline__ void copy_ahead(const MatvecArguments& a, const Share& s, Walk& w, PairRing& ring,
                                           int lane) {
  ring.refill(w.pair, min(w.tiles, 2) * (Weights::BYTES / 16) - lane, lane);
  if (w.tiles) advance(a, s, w, lane);
}
