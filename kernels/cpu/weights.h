/* Weights in tiles of 16 rows; kernels/cpu/layouts.py draws them. The numbers of the kinds are those of layouts.KINDS. */
#pragma once
#include "simd.h"

/* The split kinds serve a head, whose first pass reads the upper bits alone (head.c). */
enum weight_kind {
    Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, DENSE_F16, DENSE_BF16, DENSE_F32,
    Q6_SPLIT, /* Q6_K for a head: hi has the upper 2 bits, q the lower 4 */
    Q6_TOP,   /* its upper 2 bits alone, as twice their value: eighths of the result */
    Q8_SPLIT, /* Q8_0 for a head: hi has the upper nibbles, q the lower ones */
    Q8_TOP,   /* its upper nibbles alone, likewise */
};

#define GROUP 32      /* k that share a scale; Q6_K has two scales in it */
#define SUPER_BLOCK 8 /* groups of a block of the K kinds */

/* One matrix (n, k). Block b of tile t lies at base + t * tile_stride + b * block_stride of each plane: q holds the
 * nibbles (whole bytes for Q8_0, elements for the dense kinds), hi the bits that do not fit them, sc the scales. */
struct part {
    int32_t kind, n, k, column; /* column: where its rows begin in the output */
    const uint8_t *q, *hi, *sc;
    int64_t q_tile, q_block, hi_tile, hi_block, sc_tile, sc_block;
    const float *bias; /* n values, or NULL */
};

INLINE int kind_is_dense(int kind) { return kind >= DENSE_F16 && kind <= DENSE_F32; }
INLINE int kind_is_q6(int kind) { return kind == Q6_K || kind == Q6_SPLIT || kind == Q6_TOP; }
INLINE int kind_is_k(int kind) { return kind == Q4_K || kind == Q5_K || kind_is_q6(kind); }
INLINE int kind_is_q5(int kind) { return kind == Q5_0 || kind == Q5_1 || kind == Q5_K; }
INLINE int kind_has_min(int kind) { return kind == Q4_1 || kind == Q5_1 || kind == Q4_K || kind == Q5_K; }
INLINE int kind_groups(int kind) { return kind_is_k(kind) ? SUPER_BLOCK : 1; }
INLINE int kind_q_bytes(int kind) { return kind == Q8_0 ? 512 : 256; } /* of a group of a tile */
INLINE int kind_hi_bytes(int kind) {
    return kind_is_q6(kind) ? 128 : kind_is_q5(kind) ? 64 : kind == Q8_SPLIT || kind == Q8_TOP ? 256 : 0;
}
/* From group to group of a block: a group's high bits lie before its nibbles, but apart where the kind is split. */
INLINE int kind_q_stride(int kind) {
    return kind_q_bytes(kind) + (kind == Q6_K || kind == Q5_K ? kind_hi_bytes(kind) : 0);
}
INLINE int kind_hi_stride(int kind) { return kind == Q6_K || kind == Q5_K ? kind_q_stride(kind) : kind_hi_bytes(kind); }
INLINE int tiles_of(int n) { return (n + TILE - 1) / TILE; }

/* What dot_pair may assume of the bytes: below 16, below 64, or anything. */
INLINE int kind_bits(int kind) {
    if (kind == Q8_0 || kind == Q8_SPLIT) return 8;
    return kind == Q6_K || kind == Q6_SPLIT || kind == Q8_TOP || kind_is_q5(kind) ? 6 : 4;
}

/* What a weight's byte is above its value (0 where a minimum says it). Q6_TOP and Q8_TOP count a weight as the middle
 * of those that share its upper bits, in units of 8. */
INLINE int kind_offset(int kind) {
    return kind == Q4_0 ? 8 : kind == Q5_0 ? 16 : kind == Q6_K || kind == Q6_SPLIT ? 32
         : kind == Q8_0 || kind == Q8_SPLIT ? 128 : kind == Q6_TOP ? 3 : kind == Q8_TOP ? 15 : 0;
}

/* The offset times the activations' sum `neg`, whose sign is already turned: what a group's int32 sum starts from. */
INLINE vi offset_start(int kind, const int32_t *neg) {
    vi n = vi_repeat(neg);
    switch (kind) {
    case Q4_0: return vi_shl(n, 3);
    case Q5_0: return vi_shl(n, 4);
    case Q6_K:
    case Q6_SPLIT: return vi_shl(n, 5);
    case Q6_TOP: return vi_sub(vi_shl(n, 2), n);
    case Q8_TOP: return vi_sub(vi_shl(n, 4), n);
    case Q8_0:
    case Q8_SPLIT: return DOT8_OFFSET ? vi_shl(n, 7) : vi_set1(0);
    default: return vi_set1(0);
    }
}

/* A group of 32 k of the rows of one part of a tile, ready to multiply: w[i] are the bytes k = 4 i to 4 i + 3. */
struct group {
    vi w[8];
    vf scale, scale1; /* scale1: of the upper 16 k (Q6_K) */
    vf min;           /* what each unit of the activations' sum adds */
};

/* Value v of the 16 six-bit ones of each row: words 0 to 2 hold five each and, at the top, two bits of the last. */
INLINE vi k_value(const uint8_t *sc, int v) {
    if (v < 15) return vi_and(vi_shr(vi_load(sc + v / 5 * 64), v % 5 * 6), vi_set1(63));
    return vi_or(vi_shr(vi_load(sc), 30),
                 vi_or(vi_and(vi_shr(vi_load(sc + 64), 28), vi_set1(12)),
                       vi_and(vi_shr(vi_load(sc + 128), 26), vi_set1(48))));
}

INLINE void load_q6(const int kind, const uint8_t *q, const uint8_t *hi, struct group *o) {
    const vi two = vi_set1(0x03030303), four = vi_set1(0x3c3c3c3c), low = vi_set1(0x0f0f0f0f);
    const vi top = vi_set1(0x30303030), doubled = vi_set1(0x06060606);
    for (int i = 0; i < 4; i++) {
        vi h0 = vi_load(hi), h1 = vi_load(hi + 64);
        if (kind == Q6_TOP) {
            o->w[i] = vi_and(i ? vi_shr(h0, 2 * i - 1) : vi_shl(h0, 1), doubled);
            o->w[i + 4] = vi_and(i ? vi_shr(h1, 2 * i - 1) : vi_shl(h1, 1), doubled);
            continue;
        }
        vi z = vi_load(q + i * 64);
        if (kind == Q6_K) {
            o->w[i] = vi_or(vi_and(vi_shl(z, 2), four), vi_and(vi_shr(h0, 2 * i), two));
            o->w[i + 4] = vi_or(vi_and(vi_shr(z, 2), four), vi_and(vi_shr(h1, 2 * i), two));
        } else {
            o->w[i] = vi_or(vi_and(z, low), vi_and(i > 2 ? vi_shr(h0, 2) : vi_shl(h0, 4 - 2 * i), top));
            o->w[i + 4] = vi_or(vi_and(vi_shr(z, 4), low), vi_and(i > 2 ? vi_shr(h1, 2) : vi_shl(h1, 4 - 2 * i), top));
        }
    }
}

INLINE void load_q8(const int kind, const uint8_t *q, const uint8_t *hi, struct group *o) {
    const vi low = vi_set1(0x0f0f0f0f), high = vi_set1((int32_t)0xf0f0f0f0), doubled = vi_set1(0x1e1e1e1e);
    if (kind == Q8_0) {
        for (int i = 0; i < 8; i++) o->w[i] = vi_load(q + i * 64);
        return;
    }
    for (int i = 0; i < 4; i++) {
        vi h = vi_load(hi + i * 64);
        if (kind == Q8_TOP) {
            o->w[i] = vi_and(vi_shl(h, 1), doubled);
            o->w[i + 4] = vi_and(vi_shr(h, 3), doubled);
        } else {
            vi z = vi_load(q + i * 64);
            o->w[i] = vi_or(vi_and(vi_shl(h, 4), high), vi_and(z, low));
            o->w[i + 4] = vi_or(vi_and(h, high), vi_and(vi_shr(z, 4), low));
        }
    }
}

INLINE void load_bytes(const int kind, const uint8_t *q, const uint8_t *hi, struct group *o) {
    const vi low = vi_set1(0x0f0f0f0f), bit = vi_set1(0x10101010);
    if (kind_is_q6(kind)) {
        load_q6(kind, q, hi, o);
        return;
    }
    if (kind == Q8_0 || kind == Q8_SPLIT || kind == Q8_TOP) {
        load_q8(kind, q, hi, o);
        return;
    }
    for (int i = 0; i < 4; i++) {
        vi z = vi_load(q + i * 64);
        o->w[i] = vi_and(z, low);
        o->w[i + 4] = vi_and(vi_shr(z, 4), low);
        if (!kind_is_q5(kind)) continue;
        vi h = vi_load(hi);
        o->w[i] = vi_or(o->w[i], vi_and(vi_shl(h, 4 - i), bit));
        o->w[i + 4] = vi_or(o->w[i + 4], vi_and(i ? vi_shr(h, i) : h, bit));
    }
}

/* Group g of a block for part h (rows h * LANES onward) of a tile. */
INLINE void load_group(const int kind, const uint8_t *q, const uint8_t *hi, const uint8_t *sc, const int g, const int h,
                       struct group *o) {
    load_bytes(kind, q + g * kind_q_stride(kind) + h * LANES * 4, hi + g * kind_hi_stride(kind) + h * LANES * 4, o);
    if (kind_is_q6(kind)) {
        vf d = vf_load_f16((const uint16_t *)(sc + 256) + h * LANES);
        o->scale = vf_mul(d, vf_from_vi(vi_load_i8((const int8_t *)sc + g * 32 + h * LANES)));
        o->scale1 = vf_mul(d, vf_from_vi(vi_load_i8((const int8_t *)sc + g * 32 + 16 + h * LANES)));
    } else if (kind_is_k(kind)) {
        vf d = vf_load_f16((const uint16_t *)(sc + 192) + h * LANES);
        vf m = vf_sub(vf_set1(0.0f), vf_load_f16((const uint16_t *)(sc + 224) + h * LANES));
        o->scale = vf_mul(d, vf_from_vi(k_value(sc + h * LANES * 4, 2 * g)));
        o->min = vf_mul(m, vf_from_vi(k_value(sc + h * LANES * 4, 2 * g + 1)));
    } else {
        o->scale = vf_load_f16((const uint16_t *)sc + h * LANES);
        if (kind_has_min(kind)) o->min = vf_load_f16((const uint16_t *)(sc + 32) + h * LANES);
    }
}

/* Group i of a tile, of a kind that is known only when it runs; for what is not worth a kernel of its own. */
static inline void load_part_group(const struct part *p, int tile, int i, int h, struct group *o) {
    int64_t block = i / kind_groups(p->kind);
    const uint8_t *q = p->q + tile * p->q_tile + block * p->q_block;
    const uint8_t *hi = p->hi + tile * p->hi_tile + block * p->hi_block;
    load_group(p->kind, q, hi, p->sc + tile * p->sc_tile + block * p->sc_block, i % kind_groups(p->kind), h, o);
}
