/* Computes:  y (m, 16) = x (m, k) W^T of one tile of float16, bfloat16 or float32 W.
 * Arguments: x: float32 rows of `stride` floats; W: part->q, (k, 16) elements for each tile.
 * Requires:  nothing of k or m; rows beyond n are zeros.
 * Launch:    on the calling thread, in blocks of up to 8 tokens (4 where a tile takes more than one vector).
 * Numerics:  float32 FMA, even and odd k apart and added at the end; the same for any m.
 * Oracle:    float64 product of kernels/weights/reference.py's weights.
 * Measured:  kernels/README.md; bound by memory for one token.
 * Source:    own. */
#include "workspace.h"

INLINE vf load_dense(const int kind, const uint8_t *p) {
    if (kind == DENSE_F32) return vf_load((const float *)p);
    return kind == DENSE_F16 ? vf_load_f16((const uint16_t *)p) : vf_load_bf16((const uint16_t *)p);
}

INLINE void dense_block(const int kind, const int mr, const struct part *p, int tile, const float *x, int64_t stride,
                        float *out) {
    const int size = kind == DENSE_F32 ? 4 : 2;
    for (int h = 0; h < PARTS; h++) {
        const uint8_t *w = p->q + tile * p->q_tile + h * LANES * size;
        vf even[8], odd[8];
        for (int j = 0; j < mr; j++) even[j] = odd[j] = vf_set1(0.0f);
        int k = 0;
        for (; k + 1 < p->k; k += 2, w += 2 * TILE * size) {
            vf w0 = load_dense(kind, w), w1 = load_dense(kind, w + TILE * size);
            for (int j = 0; j < mr; j++) {
                even[j] = vf_fma(w0, vf_repeat(x + j * stride + k), even[j]);
                odd[j] = vf_fma(w1, vf_repeat(x + j * stride + k + 1), odd[j]);
            }
        }
        if (k < p->k)
            for (int j = 0; j < mr; j++)
                even[j] = vf_fma(load_dense(kind, w), vf_repeat(x + j * stride + k), even[j]);
        for (int j = 0; j < mr; j++) vf_store(out + j * TILE + h * LANES, vf_add(even[j], odd[j]));
    }
}

#define DENSE(kind)                                                                                                    \
    static void dense_##kind(const struct part *p, int tile, const float *x, int64_t stride, int width, float *out) {  \
        if (width == 8) dense_block(kind, 8, p, tile, x, stride, out);                                                 \
        else if (width == 4) dense_block(kind, 4, p, tile, x, stride, out);                                            \
        else if (width == 2) dense_block(kind, 2, p, tile, x, stride, out);                                            \
        else dense_block(kind, 1, p, tile, x, stride, out);                                                            \
    }
DENSE(DENSE_F16)
DENSE(DENSE_BF16)
DENSE(DENSE_F32)

void dense_tile(const struct part *part, int tile, const float *x, int64_t stride, int m, float *out) {
    for (int t0 = 0; t0 < m;) {
        int width = block_width(m - t0);
        if (PARTS > 1 && width == 8) width = 4;
        const float *rows = x + (int64_t)t0 * stride;
        float *sums = out + (int64_t)t0 * TILE;
        if (part->kind == DENSE_F32) dense_DENSE_F32(part, tile, rows, stride, width, sums);
        else if (part->kind == DENSE_F16) dense_DENSE_F16(part, tile, rows, stride, width, sums);
        else dense_DENSE_BF16(part, tile, rows, stride, width, sums);
        t0 += width;
    }
}
