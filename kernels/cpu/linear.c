/* Computes:  y (m, n) = x (m, k) W^T of quantized W, and its uses: + bias, added to y, or silu(gate) * up.
 * Arguments: x, y: float32 rows of `stride` floats; W: parts that write column slices of y (weights.h).
 * Requires:  k % 32 == 0 (256 for the K kinds), m <= ws->max_tokens, k <= ws->max_k; gated: two parts of equal n.
 * Launch:    a chunk some tiles of 16 rows. Up to 4 tokens multiply straight from the packed bits; more unpack a tile
 *            once into the thread's scratch and run over it in blocks of 8 tokens.
 * Numerics:  int8 activations, int32 sums in a group of 32, float32 across groups in the order of k. Each output is the
 *            same sequence of operations for any m and any number of threads: bitwise equal alone and in a batch.
 * Oracle:    float64 product of kernels/weights/reference.py's weights and the quantized activations.
 * Measured:  kernels/README.md; bound by memory for one token, by the dot products of two ports for many.
 * Source:    own; VNNI's use for 16 rows at once needs no sum across lanes. */
#include "workspace.h"

#define CHUNK_VALUES 200000 /* weights of a chunk for one token: some 20 us, so that threads end together */

/* Adds a group's product to f[j], token by token of a block of mr. */
INLINE void group_dot(const int kind, const int mr, const struct group *w, const int8_t *xq, const float *xs,
                      const float *xsum, const int32_t *neg, vf *f) {
    const int bits = kind_bits(kind), halves = kind_is_q6(kind) ? 2 : 1;
    vf t[8];
#pragma clang loop unroll(full)
    for (int half = 0; half < halves; half++) {
        vi init[8], s[8];
        for (int j = 0; j < mr; j++) {
            init[j] = offset_start(kind, neg + half * mr + j);
            s[j] = dot_start(init[j], bits);
        }
#pragma clang loop unroll(full)
        for (int i = half * 4; i < (halves == 2 ? half * 4 + 4 : 8); i += 2)
            for (int j = 0; j < mr; j++)
                s[j] = dot_pair(s[j], w->w[i], w->w[i + 1], vi_repeat(xq + (i * mr + j) * 4),
                                vi_repeat(xq + ((i + 1) * mr + j) * 4), bits);
        for (int j = 0; j < mr; j++) {
            vf v = vf_from_vi(dot_end(s[j], init[j], bits));
            t[j] = half ? vf_fma(v, w->scale1, t[j]) : vf_mul(v, w->scale);
        }
    }
    for (int j = 0; j < mr; j++) {
        f[j] = vf_fma(t[j], vf_repeat(xs + j), f[j]);
        if (kind_has_min(kind)) f[j] = vf_fma(w->min, vf_repeat(xsum + j), f[j]);
    }
}

/* Tokens t0 to t0 + mr of one tile, from its packed bits; out: rows of 16 floats. */
INLINE void packed_tile(const int kind, const int mr, const struct part *p, int tile, const struct activations *a,
                        int t0, float *out) {
    const int groups = kind_groups(kind), blocks = p->k / (groups * GROUP);
    const uint8_t *q = p->q + tile * p->q_tile, *hi = p->hi + tile * p->hi_tile, *sc = p->sc + tile * p->sc_tile;
    int64_t first = (int64_t)t0 * (p->k / GROUP);
    const int8_t *xq = a->q + (int64_t)t0 * p->k;
    const float *xs = a->scale + first, *xsum = a->sum + first;
    const int32_t *neg = kind_is_q6(kind) ? a->neg16 + 2 * first : a->neg + first;
    const int negs = kind_is_q6(kind) ? 2 * mr : mr;
    vf f[PARTS][8];
    for (int h = 0; h < PARTS; h++)
        for (int j = 0; j < mr; j++) f[h][j] = vf_set1(0.0f);
    for (int b = 0; b < blocks; b++) {
#pragma clang loop unroll(full)
        for (int g = 0; g < groups; g++) {
            for (int h = 0; h < PARTS; h++) {
                struct group w;
                load_group(kind, q, hi, sc, g, h, &w);
                group_dot(kind, mr, &w, xq, xs, xsum, neg, f[h]);
            }
            xq += GROUP * mr, xs += mr, xsum += mr, neg += negs;
        }
        q += p->q_block, hi += p->hi_block, sc += p->sc_block;
    }
    for (int j = 0; j < mr; j++)
        for (int h = 0; h < PARTS; h++) vf_store(out + j * TILE + h * LANES, f[h][j]);
}

/* Unpacked tile: for each part h the bytes of all quads, then the scales, second scales and minima of all groups. */
struct unpacked {
    uint8_t *bytes;
    float *scale, *scale1, *min;
};

INLINE struct unpacked unpacked_at(uint8_t *scratch, int k) {
    int64_t values = (int64_t)(k / GROUP) * TILE;
    float *floats = (float *)(scratch + (int64_t)k * TILE);
    return (struct unpacked){scratch, floats, floats + values, floats + 2 * values};
}

INLINE void unpack_tile(const int kind, const struct part *p, int tile, struct unpacked u) {
    const int groups = kind_groups(kind), all = p->k / GROUP;
    for (int h = 0; h < PARTS; h++) {
        const uint8_t *q = p->q + tile * p->q_tile, *hi = p->hi + tile * p->hi_tile, *sc = p->sc + tile * p->sc_tile;
        for (int at = h * all; at < (h + 1) * all; at += groups) {
#pragma clang loop unroll(full)
            for (int g = 0; g < groups; g++) {
                struct group w;
                load_group(kind, q, hi, sc, g, h, &w);
                for (int i = 0; i < 8; i++) vi_store(u.bytes + ((int64_t)(at + g) * 8 + i) * LANES * 4, w.w[i]);
                vf_store(u.scale + (int64_t)(at + g) * LANES, w.scale);
                if (kind_is_q6(kind)) vf_store(u.scale1 + (int64_t)(at + g) * LANES, w.scale1);
                if (kind_has_min(kind)) vf_store(u.min + (int64_t)(at + g) * LANES, w.min);
            }
            q += p->q_block, hi += p->hi_block, sc += p->sc_block;
        }
    }
}

INLINE void unpacked_block(const int kind, const int mr, const struct part *p, struct unpacked u,
                           const struct activations *a, int t0, float *out) {
    const int groups = p->k / GROUP;
    int64_t first = (int64_t)t0 * groups;
    for (int h = 0; h < PARTS; h++) {
        const int8_t *xq = a->q + (int64_t)t0 * p->k;
        const int32_t *neg = kind_is_q6(kind) ? a->neg16 + 2 * first : a->neg + first;
        vf f[8];
        for (int j = 0; j < mr; j++) f[j] = vf_set1(0.0f);
        for (int g = 0; g < groups; g++) {
            int64_t at = (int64_t)h * groups + g;
            struct group w;
            for (int i = 0; i < 8; i++) w.w[i] = vi_load(u.bytes + (at * 8 + i) * LANES * 4);
            w.scale = vf_load(u.scale + at * LANES);
            if (kind_is_q6(kind)) w.scale1 = vf_load(u.scale1 + at * LANES);
            if (kind_has_min(kind)) w.min = vf_load(u.min + at * LANES);
            group_dot(kind, mr, &w, xq + (int64_t)g * GROUP * mr, a->scale + first + (int64_t)g * mr,
                      a->sum + first + (int64_t)g * mr, neg + (int64_t)g * (kind_is_q6(kind) ? 2 * mr : mr), f);
        }
        for (int j = 0; j < mr; j++) vf_store(out + j * TILE + h * LANES, f[j]);
    }
}

typedef void (*packed_fn)(const struct part *, int, const struct activations *, int, float *);
typedef void (*unpack_fn)(const struct part *, int, struct unpacked);
typedef void (*unpacked_fn)(const struct part *, struct unpacked, const struct activations *, int, float *);

#define PACKED(kind, mr)                                                                                               \
    static void packed_##kind##_##mr(const struct part *p, int tile, const struct activations *a, int t0,              \
                                     float *out) {                                                                     \
        packed_tile(kind, mr, p, tile, a, t0, out);                                                                    \
    }
#define UNPACKED(kind, mr)                                                                                             \
    static void unpacked_##kind##_##mr(const struct part *p, struct unpacked u, const struct activations *a, int t0,   \
                                       float *out) {                                                                   \
        unpacked_block(kind, mr, p, u, a, t0, out);                                                                    \
    }
#define KERNELS_OF(kind)                                                                                               \
    PACKED(kind, 1) PACKED(kind, 2) PACKED(kind, 4)                                                                    \
    UNPACKED(kind, 1) UNPACKED(kind, 2) UNPACKED(kind, 4) UNPACKED(kind, 8)                                            \
    static void unpack_##kind(const struct part *p, int tile, struct unpacked u) { unpack_tile(kind, p, tile, u); }
KERNELS_OF(Q4_0)
KERNELS_OF(Q4_1)
KERNELS_OF(Q5_0)
KERNELS_OF(Q5_1)
KERNELS_OF(Q8_0)
KERNELS_OF(Q4_K)
KERNELS_OF(Q5_K)
KERNELS_OF(Q6_K)

#define PACKED_OF(kind) PACKED(kind, 1) PACKED(kind, 2) PACKED(kind, 4)
PACKED_OF(Q6_SPLIT)
PACKED_OF(Q6_TOP)
PACKED_OF(Q8_SPLIT)
PACKED_OF(Q8_TOP)

#define PACKED_ROW(kind) {packed_##kind##_1, packed_##kind##_2, packed_##kind##_4}
static const packed_fn split_table[4][3] = {PACKED_ROW(Q6_SPLIT), PACKED_ROW(Q6_TOP), PACKED_ROW(Q8_SPLIT),
                                            PACKED_ROW(Q8_TOP)};

#define ROW(kind)                                                                                                      \
    {{packed_##kind##_1, packed_##kind##_2, packed_##kind##_4},                                                        \
     unpack_##kind,                                                                                                    \
     {unpacked_##kind##_1, unpacked_##kind##_2, unpacked_##kind##_4, unpacked_##kind##_8}}
static const struct {
    packed_fn packed[3];
    unpack_fn unpack;
    unpacked_fn unpacked[4];
} table[] = {ROW(Q4_0), ROW(Q4_1), ROW(Q5_0), ROW(Q5_1), ROW(Q8_0), ROW(Q4_K), ROW(Q5_K), ROW(Q6_K)};

static int log2_of(int width) { return width == 8 ? 3 : width == 4 ? 2 : width == 2 ? 1 : 0; }

/* The first `width` (1, 2 or 4) tokens of one tile of a split kind: out (width, 16). */
void split_tile(const struct part *part, int tile, const struct activations *acts, int width, float *out) {
    split_table[part->kind - Q6_SPLIT][log2_of(width)](part, tile, acts, 0, out);
}

void dense_tile(const struct part *part, int tile, const float *x, int64_t stride, int m, float *out);

/* All m tokens of a tile: out (m, 16), without bias. */
void part_tile(const struct workspace *ws, const struct part *part, int tile, const float *x, int64_t stride, int m,
               uint8_t *scratch, float *out) {
    if (kind_is_dense(part->kind)) {
        dense_tile(part, tile, x, stride, m, out);
        return;
    }
    struct unpacked u = unpacked_at(scratch, part->k);
    if (m > 4) table[part->kind].unpack(part, tile, u);
    for (int t0 = 0; t0 < m;) {
        int width = block_width(m - t0);
        if (m > 4) table[part->kind].unpacked[log2_of(width)](part, u, &ws->acts, t0, out + (int64_t)t0 * TILE);
        else table[part->kind].packed[log2_of(width)](part, tile, &ws->acts, t0, out + (int64_t)t0 * TILE);
        t0 += width;
    }
}

struct linear_job {
    struct workspace *ws;
    const struct linear *w;
    const float *x;
    int64_t stride, out_stride;
    float *out;
    int m, mode, tiles, per_chunk;
};

/* Writes (m, 16) sums to their columns. */
static void emit(const struct linear_job *job, const struct part *p, int tile, const float *sums) {
    for (int t = 0; t < job->m; t++)
        for (int h = 0; h < PARTS; h++) {
            int row = tile * TILE + h * LANES, n = p->n - row;
            if (n <= 0) break;
            float *y = job->out + (int64_t)t * job->out_stride + p->column + row;
            vf v = vf_load(sums + t * TILE + h * LANES);
            if (p->bias) v = vf_add(v, vf_load_first(p->bias + row, n));
            if (job->mode == LINEAR_ADD) v = vf_add(v, vf_load_first(y, n));
            vf_store_first(y, v, n);
        }
}

static void emit_gated(const struct linear_job *job, int tile, const float *gate_sums, const float *up_sums) {
    const struct part *gate = job->w->part, *up = gate + 1;
    for (int t = 0; t < job->m; t++)
        for (int h = 0; h < PARTS; h++) {
            int row = tile * TILE + h * LANES, n = gate->n - row;
            if (n <= 0) break;
            vf g = vf_load(gate_sums + t * TILE + h * LANES), u = vf_load(up_sums + t * TILE + h * LANES);
            if (gate->bias) g = vf_add(g, vf_load_first(gate->bias + row, n));
            if (up->bias) u = vf_add(u, vf_load_first(up->bias + row, n));
            vf one = vf_set1(1.0f), e = vf_exp(vf_sub(vf_set1(0.0f), g));
            vf_store_first(job->out + (int64_t)t * job->out_stride + row, vf_mul(vf_div(g, vf_add(one, e)), u), n);
        }
}

static void linear_chunk(void *arg, int chunk, int thread) {
    const struct linear_job *job = arg;
    struct workspace *ws = job->ws;
    uint8_t *base = ws->scratch + thread * ws->scratch_stride;
    float *sums = (float *)base, *more = sums + (int64_t)ws->max_tokens * TILE;
    uint8_t *scratch = (uint8_t *)(more + (int64_t)ws->max_tokens * TILE);
    int end = (chunk + 1) * job->per_chunk;
    for (int i = chunk * job->per_chunk; i < end && i < job->tiles; i++) {
        const struct part *p = job->w->part;
        int tile = i;
        if (job->mode == LINEAR_GATED) {
            part_tile(ws, p, tile, job->x, job->stride, job->m, scratch, sums);
            part_tile(ws, p + 1, tile, job->x, job->stride, job->m, scratch, more);
            emit_gated(job, tile, sums, more);
            continue;
        }
        while (tile >= tiles_of(p->n)) tile -= tiles_of(p++->n);
        part_tile(ws, p, tile, job->x, job->stride, job->m, scratch, sums);
        emit(job, p, tile, sums);
    }
}

void linear(struct workspace *ws, const struct linear *w, const float *x, int64_t stride, int m, float *out,
            int64_t out_stride, int mode) {
    int tiles = 0, quantized = 0;
    for (int i = 0; i < w->parts; i++) {
        if (mode != LINEAR_GATED || i == 0) tiles += tiles_of(w->part[i].n);
        quantized |= !kind_is_dense(w->part[i].kind);
    }
    if (quantized) quantize_rows(ws, x, stride, m, w->k);
    int per_chunk = CHUNK_VALUES / (w->k * (mode == LINEAR_GATED ? 2 : 1) * TILE * (1 + m / 16)) + 1;
    struct linear_job job = {ws, w, x, stride, out_stride, out, m, mode, tiles, per_chunk};
    pool_run(ws->pool, linear_chunk, &job, (tiles + per_chunk - 1) / per_chunk);
}
