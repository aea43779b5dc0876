// Computes: out[i] = row token_ids[i] of a table in the tile format of kernels/weights/quant_format.py.
// Arguments: table, token_ids, out, rows, columns, tokens
// Requires: rows >= 1; columns >= 1; tokens >= 1; columns % 4 == 0; BITS in (3, 4, 8); GROUP in (32, 64, 128); MINIMA
//   in (0, 1)
// Launch: grid (ceil(columns / 512), tokens), block 128; -DBITS -DGROUP -DMINIMA. The table may be host memory that
//   the device sees: each row is read once, in runs of 32 bytes or more.
// Numerics: scale * code + minimum in float32, one rounding. Ids that are no row of the table, as those of
//   padding are, give zeros.
// Oracle: quant_format.unpack, in tests/gpu/test_elementwise.py.
// Measured: kernels/README.md.
// Source: a lane's four columns are four bytes of one word of the tile.
#include "tile.cuh"

struct EmbedArguments {
  const u8* table;
  const int* token_ids;  // (tokens)
  float* out;            // (tokens, columns)
  int rows, columns, tokens;
};

typedef Tile<BITS, GROUP, MINIMA> Format;

// Codes of columns 4 lane .. 4 lane + 3 of a tile's row, in the bytes of a word, two's complement of 8 bits.
__device__ __forceinline__ u32 load_codes(const u8* tile, int row, int lane) {
  const int half = row / 8, g = row % 8, t = lane / 8, quarter = lane % 8;  // columns 4 quarter.. of the lane's 32
  if (BITS == 8) return ((const u32*)tile)[(((half * 2 + quarter / 4) * 8 + g) * 4 + t) * 4 + quarter % 4];
  if (BITS == 4) {
    const u32 word = ((const u32*)tile)[((half * 8 + g) * 4 + t) * 4 + quarter / 2];
    const u32 nibbles = word >> (quarter % 2 * 4) & 0x0f0f0f0fu;
    return nibbles | (nibbles & 0x08080808u) * 30u;  // the sign bit upward: 8 * 30 = 0xf0
  }
  const int place = (g * 4 + t) * 2 + half;
  const u32 low = ((const u32*)tile)[place * 2 + quarter / 4] >> (quarter % 4 * 2) & 0x03030303u;
  const u32 top = ((const u32*)(tile + 512))[place] >> quarter & 0x01010101u;
  return low | top * 0xfcu;
}

extern "C" __global__ void __launch_bounds__(128) embed(const __grid_constant__ EmbedArguments a) {
  wait_for_previous();  // and the next kernel starts when this one ends: attention_decode.cu says why
  const int lane = threadIdx.x % WARP, token = blockIdx.y, tile_column = blockIdx.x * 4 + threadIdx.x / WARP;
  const int column = tile_column * TILE_COLUMNS + 4 * lane, id = a.token_ids[token];
  if (column >= a.columns) return;
  float4* out = (float4*)(a.out + (i64)token * a.columns + column);
  if (id < 0 || id >= a.rows) {
    *out = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return;
  }
  const int across = (a.columns + TILE_COLUMNS - 1) / TILE_COLUMNS, row = id % TILE_ROWS;
  const u8* tile = a.table + ((i64)(id / TILE_ROWS) * across + tile_column) * Format::BYTES;
  const u32 codes = load_codes(tile, row, lane);
  const u16* scales = (const u16*)(tile + Format::CODE_BYTES) + 4 * lane / GROUP * TILE_ROWS + row;
  const float scale = half_to_float(scales[0]);
  const float minimum = MINIMA ? half_to_float(scales[Format::GROUPS * TILE_ROWS]) : 0.0f;
  const i8 c[4] = {(i8)codes, (i8)(codes >> 8), (i8)(codes >> 16), (i8)(codes >> 24)};
  *out = make_float4(c[0] * scale + minimum, c[1] * scale + minimum, c[2] * scale + minimum, c[3] * scale + minimum);
}
