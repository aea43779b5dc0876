/* Computes:  the tiles of weights.h from a file's rows, and float32 rows from tiles.
 * Arguments: pack_part: src (n, row_bytes) uint8 in ggml's block layout, part->q/hi/sc the destination; read_rows: ids
 *            (m) int32, out (m, k) float32.
 * Requires:  k a multiple of the kind's block (32, or 256 for the K kinds); 0 <= ids < n.
 * Launch:    a chunk a few tiles of 16 rows, over the pool; rows beyond n are packed as zeros.
 * Numerics:  loses nothing: every bit of the file is kept; read_rows multiplies in float32.
 * Oracle:    kernels/weights/reference.py: dequantize, and multiplying by the unit matrix gives the rows back.
 * Measured:  a 1.1 GB model packs in a second on two cores of Zen 4.
 * Source:    the block layouts are ggml's (ggml-common.h, MIT), the tiles our own. */
#include <stddef.h>

#include "pool.h"
#include "weights.h"

struct raw_block {
    uint8_t q[256];
    uint16_t d, m;
    int8_t scale[16]; /* of groups of 32 (K kinds) or 16 (Q6_K) */
    uint8_t min[8];
};

static int file_kind(int kind) { return kind == Q6_SPLIT ? Q6_K : kind == Q8_SPLIT ? Q8_0 : kind; }

static int raw_bytes(int kind) {
    static const int bytes[] = {18, 20, 22, 24, 34, 144, 176, 210, 2, 2, 4};
    return bytes[file_kind(kind)];
}

static uint16_t load16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t load32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }

static void read_small(int kind, const uint8_t *s, struct raw_block *o) {
    o->d = load16(s);
    s += 2;
    if (kind_has_min(kind)) {
        o->m = load16(s);
        s += 2;
    }
    if (file_kind(kind) == Q8_0) {
        for (int i = 0; i < 32; i++) o->q[i] = s[i] ^ 0x80;
        return;
    }
    uint32_t high = 0;
    if (kind == Q5_0 || kind == Q5_1) {
        high = load32(s);
        s += 4;
    }
    for (int i = 0; i < 16; i++) {
        o->q[i] = (uint8_t)((s[i] & 15) | (high >> i & 1) << 4);
        o->q[i + 16] = (uint8_t)(s[i] >> 4 | (high >> (i + 16) & 1) << 4);
    }
}

static void read_k_scales(const uint8_t *s, struct raw_block *o) {
    for (int j = 0; j < 4; j++) {
        o->scale[j] = (int8_t)(s[j] & 63);
        o->min[j] = s[j + 4] & 63;
        o->scale[j + 4] = (int8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        o->min[j + 4] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

static void read_k(int kind, const uint8_t *s, struct raw_block *o) {
    o->d = load16(s);
    o->m = load16(s + 2);
    read_k_scales(s + 4, o);
    const uint8_t *high = s + 16, *low = kind == Q5_K ? s + 48 : s + 16;
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 32; i++) {
            uint8_t h = kind == Q5_K ? high[i] : 0;
            o->q[64 * j + i] = (uint8_t)((low[32 * j + i] & 15) | (h >> (2 * j) & 1) << 4);
            o->q[64 * j + 32 + i] = (uint8_t)(low[32 * j + i] >> 4 | (h >> (2 * j + 1) & 1) << 4);
        }
}

static void read_q6_k(const uint8_t *s, struct raw_block *o) {
    o->d = load16(s + 208);
    memcpy(o->scale, s + 192, 16);
    for (int n = 0; n < 2; n++) {
        const uint8_t *low = s + 64 * n, *high = s + 128 + 32 * n;
        uint8_t *q = o->q + 128 * n;
        for (int i = 0; i < 32; i++) {
            q[i] = (uint8_t)((low[i] & 15) | (high[i] & 3) << 4);
            q[i + 32] = (uint8_t)((low[i + 32] & 15) | (high[i] >> 2 & 3) << 4);
            q[i + 64] = (uint8_t)(low[i] >> 4 | (high[i] >> 4 & 3) << 4);
            q[i + 96] = (uint8_t)(low[i + 32] >> 4 | high[i] >> 6 << 4);
        }
    }
}

static void read_block(int kind, const uint8_t *src, struct raw_block *o) {
    if (kind_is_q6(kind)) read_q6_k(src, o);
    else if (kind_is_k(kind)) read_k(kind, src, o);
    else read_small(kind, src, o);
}

static void put32(uint8_t *p, uint32_t v) { memcpy(p, &v, 4); }

static void pack_group(int kind, const uint8_t *values, uint8_t *q, uint8_t *hi) {
    const uint32_t low = 0x0f0f0f0fu;
    uint32_t quad[8], bits[2] = {0, 0};
    memcpy(quad, values, 32);
    if (kind == Q8_0) {
        for (int i = 0; i < 8; i++) put32(q + 64 * i, quad[i]);
        return;
    }
    if (kind == Q8_SPLIT)
        for (int i = 0; i < 4; i++) put32(hi + 64 * i, (quad[i] >> 4 & low) | (quad[i + 4] & ~low));
    for (int i = 0; i < 8; i++) {
        if (kind == Q6_K || kind == Q6_SPLIT) {
            uint32_t two = (kind == Q6_K ? quad[i] : quad[i] >> 4) & 0x03030303u;
            bits[i / 4] |= two << (2 * (i & 3));
            if (kind == Q6_K) quad[i] >>= 2;
        } else {
            bits[0] |= (quad[i] >> 4 & 0x01010101u) << i;
        }
        quad[i] &= low;
    }
    for (int i = 0; i < 4; i++) put32(q + 64 * i, quad[i] | quad[i + 4] << 4);
    if (kind_is_q6(kind) || kind_is_q5(kind)) put32(hi, bits[0]);
    if (kind_is_q6(kind)) put32(hi + 64, bits[1]);
}

static void pack_scales(int kind, const struct raw_block *b, uint8_t *sc, int row) {
    if (kind_is_q6(kind)) {
        for (int g = 0; g < 16; g++) sc[16 * g + row] = (uint8_t)b->scale[g];
        memcpy(sc + 256 + 2 * row, &b->d, 2);
        return;
    }
    if (!kind_is_k(kind)) {
        memcpy(sc + 2 * row, &b->d, 2);
        if (kind_has_min(kind)) memcpy(sc + 32 + 2 * row, &b->m, 2);
        return;
    }
    uint32_t last = b->min[7];
    for (int word = 0; word < 3; word++) {
        uint32_t bits = (last >> (2 * word) & 3) << 30;
        for (int i = 0; i < 5; i++) {
            int v = 5 * word + i;
            bits |= (uint32_t)(v & 1 ? b->min[v / 2] : (uint8_t)b->scale[v / 2]) << (6 * i);
        }
        put32(sc + 64 * word + 4 * row, bits);
    }
    memcpy(sc + 192 + 2 * row, &b->d, 2);
    memcpy(sc + 224 + 2 * row, &b->m, 2);
}

struct pack_job {
    const struct part *part;
    const uint8_t *src;
    int64_t row_bytes;
    int tiles_per_chunk;
};

static void pack_dense_tile(const struct pack_job *job, int tile) {
    const struct part *p = job->part;
    int size = raw_bytes(p->kind);
    uint8_t *dst = (uint8_t *)p->q + tile * p->q_tile;
    for (int row = 0; row < TILE; row++) {
        int n = tile * TILE + row;
        const uint8_t *src = job->src + (n < p->n ? n : 0) * job->row_bytes;
        for (int k = 0; k < p->k; k++) {
            if (n >= p->n) memset(dst + ((int64_t)k * TILE + row) * size, 0, (size_t)size);
            else memcpy(dst + ((int64_t)k * TILE + row) * size, src + (int64_t)k * size, (size_t)size);
        }
    }
}

static void pack_tile(const struct pack_job *job, int tile) {
    const struct part *p = job->part;
    int groups = kind_groups(p->kind), blocks = p->k / (groups * GROUP);
    struct raw_block raw;
    for (int b = 0; b < blocks; b++) {
        uint8_t *q = (uint8_t *)p->q + tile * p->q_tile + b * p->q_block;
        uint8_t *hi = (uint8_t *)p->hi + tile * p->hi_tile + b * p->hi_block;
        uint8_t *sc = (uint8_t *)p->sc + tile * p->sc_tile + b * p->sc_block;
        for (int row = 0; row < TILE; row++) {
            int n = tile * TILE + row;
            if (n < p->n) read_block(p->kind, job->src + n * job->row_bytes + (int64_t)b * raw_bytes(p->kind), &raw);
            else memset(&raw, 0, sizeof raw);
            for (int g = 0; g < groups; g++)
                pack_group(p->kind, raw.q + 32 * g, q + g * kind_q_stride(p->kind) + 4 * row,
                           hi + g * kind_hi_stride(p->kind) + 4 * row);
            pack_scales(p->kind, &raw, sc, row);
        }
    }
}

static void pack_chunk(void *arg, int chunk, int thread) {
    struct pack_job *job = arg;
    (void)thread;
    int end = (chunk + 1) * job->tiles_per_chunk, tiles = tiles_of(job->part->n);
    for (int t = chunk * job->tiles_per_chunk; t < end && t < tiles; t++) {
        if (kind_is_dense(job->part->kind)) pack_dense_tile(job, t);
        else pack_tile(job, t);
    }
}

EXPORT void pack_part(struct pool *pool, const struct part *part, const uint8_t *src, int64_t row_bytes) {
    struct pack_job job = {part, src, row_bytes, 4};
    pool_run(pool, pack_chunk, &job, (tiles_of(part->n) + 3) / 4);
}

/* One row of a part as float32, from its tile. */
static void read_row(const struct part *p, int row, float *out) {
    int h = row % TILE / LANES, lane = row % LANES;
    for (int g = 0; g < p->k / GROUP; g++, out += GROUP) {
        struct group w;
        uint8_t bytes[8][LANES * 4];
        float scale[2][LANES], min[LANES];
        load_part_group(p, row / TILE, g, h, &w);
        for (int i = 0; i < 8; i++) vi_store(bytes[i], w.w[i]);
        vf_store(scale[0], w.scale);
        vf_store(scale[1], kind_is_q6(p->kind) ? w.scale1 : w.scale);
        vf_store(min, kind_has_min(p->kind) ? w.min : vf_set1(0.0f));
        for (int i = 0; i < GROUP; i++) {
            int value = bytes[i / 4][4 * lane + i % 4] - kind_offset(p->kind);
            out[i] = scale[i / 16][lane] * (float)value + min[lane];
        }
    }
}

static void read_dense_row(const struct part *p, int row, float *out) {
    int tile = row / TILE, size = raw_bytes(p->kind);
    const uint8_t *src = p->q + tile * p->q_tile + row % TILE * size;
    for (int k = 0; k < p->k; k++, src += TILE * size) {
        uint16_t half[LANES] = {load16(src)};
        float one[LANES];
        if (p->kind == DENSE_F32) memcpy(one, src, 4);
        else vf_store(one, p->kind == DENSE_F16 ? vf_load_f16(half) : vf_load_bf16(half));
        out[k] = one[0];
    }
}

void read_rows(const struct part *part, const int32_t *ids, int m, float *out) {
    for (int i = 0; i < m; i++) {
        if (kind_is_dense(part->kind)) read_dense_row(part, ids[i], out + (int64_t)i * part->k);
        else read_row(part, ids[i], out + (int64_t)i * part->k);
    }
}
