/* Computes:  weights -> codes of 3, 4 or 8 bits with a float16 scale (and minimum) for each group: of all candidate
 *            scales the one with the least weighted squared error, which least squares over its codes then mends.
 * Arguments: struct rounding below: weights (n, k) float32, importance (k) or null, codes (n, k) int8, scales and
 *            minima (n, groups of k) float16; minima null for symmetric formats.
 * Requires:  bits 3, 4 or 8; group 32, 64 or 128; finite weights, |w| <= 65504; importance >= 0.
 *            Symmetric: candidate c is the scale (largest weight) / candidates[c], of either sign, so that the code
 *            -2^(bits-1) is of use on both sides. With minima: it is the share of the group's range that is covered.
 * Launch:    a chunk is 16 rows, over the pool.
 * Numerics:  float32 in one fixed order (16 lanes, then halves), no fused operations: the same codes on every CPU.
 * Oracle:    kernels/weights/rounding.py: round_in_numpy, bitwise.
 * Measured:  kernels/README.md.
 * Source:    own. */
#include "pool.h"
#include "simd.h"

#define MAX_GROUP 128
#define ROWS 16
#define PASSES 2 /* of least squares */

struct rounding {
    const float *weights, *importance, *candidates;
    int8_t *codes;
    uint16_t *scales, *minima;
    int32_t n, k, bits, group, num_candidates;
};

struct group {
    float w[MAX_GROUP], h[MAX_GROUP], code[MAX_GROUP];
    int lanes; /* values with padding, a multiple of 16; padding has importance 0 */
    float low, high, error, scale, minimum;
};

/* 16 partial sums in registers; the order of adding does not depend on the width of these. */
struct lanes { vf part[PARTS]; };

INLINE struct lanes no_lanes(void) {
    struct lanes sum;
    for (int p = 0; p < PARTS; p++) sum.part[p] = vf_set1(0.0f);
    return sum;
}

static float add_lanes(struct lanes sum) {
    float lane[16];
    for (int p = 0; p < PARTS; p++) vf_store(lane + p * LANES, sum.part[p]);
    for (int width = 8; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

static float rounded16(float v) {
    uint16_t bits[LANES];
    float lanes[LANES];
    float limited = v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v;
    vf_store_f16(bits, vf_set1(limited));
    vf_store(lanes, vf_load_f16(bits));
    return lanes[0];
}

static uint16_t bits16(float v) {
    uint16_t bits[LANES];
    vf_store_f16(bits, vf_set1(v));
    return bits[0];
}

INLINE vf code_of(const struct group *g, vf w, vf minimum, vf inverse) {
    const vf magic = vf_set1(12582912.0f); /* 1.5 * 2^23: adding it rounds to the nearest, ties to even */
    vf v = vf_mul(vf_sub(w, minimum), inverse);
    v = vf_min(vf_max(v, vf_set1(g->low)), vf_set1(g->high));
    return vf_sub(vf_add(v, magic), magic);
}

/* Tries a scale and a minimum and keeps them where they are better than what there is; returns whether. */
static int consider(struct group *g, float scale, float minimum) {
    struct lanes sum = no_lanes();
    vf s = vf_set1(scale), m = vf_set1(minimum), inverse = vf_set1(scale == 0.0f ? 0.0f : 1.0f / scale);
    for (int i = 0; i < g->lanes; i += 16)
        for (int p = 0; p < PARTS; p++) {
            vf w = vf_load(g->w + i + p * LANES), code = code_of(g, w, m, inverse);
            vf e = vf_sub(w, vf_add(vf_mul(s, code), m));
            sum.part[p] = vf_add(sum.part[p], vf_mul(vf_load(g->h + i + p * LANES), vf_mul(e, e)));
        }
    float error = add_lanes(sum);
    if (!(error < g->error)) return 0;
    g->error = error;
    g->scale = scale;
    g->minimum = minimum;
    return 1;
}

/* The codes of the best scale and minimum. */
static void write_codes(struct group *g) {
    vf m = vf_set1(g->minimum), inverse = vf_set1(g->scale == 0.0f ? 0.0f : 1.0f / g->scale);
    for (int i = 0; i < g->lanes; i += LANES) vf_store(g->code + i, code_of(g, vf_load(g->w + i), m, inverse));
}

static void mend_symmetric(struct group *g) {
    for (int pass = 0; pass < PASSES; pass++) {
        struct lanes product = no_lanes(), square = no_lanes();
        write_codes(g);
        for (int i = 0; i < g->lanes; i += 16)
            for (int p = 0; p < PARTS; p++) {
                int at = i + p * LANES;
                vf q = vf_load(g->code + at), weighted = vf_mul(vf_load(g->h + at), q);
                product.part[p] = vf_add(product.part[p], vf_mul(weighted, vf_load(g->w + at)));
                square.part[p] = vf_add(square.part[p], vf_mul(weighted, q));
            }
        float above = add_lanes(product), below = add_lanes(square);
        if (!(below > 0.0f) || !consider(g, rounded16(above / below), 0.0f)) return;
    }
}

static void mend_with_minimum(struct group *g) {
    for (int pass = 0; pass < PASSES; pass++) {
        struct lanes h = no_lanes(), hq = no_lanes(), hqq = no_lanes(), hw = no_lanes(), hqw = no_lanes();
        write_codes(g);
        for (int i = 0; i < g->lanes; i += 16)
            for (int p = 0; p < PARTS; p++) {
                int at = i + p * LANES;
                vf weight = vf_load(g->h + at), q = vf_load(g->code + at), w = vf_load(g->w + at);
                vf weighted = vf_mul(weight, q);
                h.part[p] = vf_add(h.part[p], weight);
                hq.part[p] = vf_add(hq.part[p], weighted);
                hqq.part[p] = vf_add(hqq.part[p], vf_mul(weighted, q));
                hw.part[p] = vf_add(hw.part[p], vf_mul(weight, w));
                hqw.part[p] = vf_add(hqw.part[p], vf_mul(weighted, w));
            }
        float s = add_lanes(h), sq = add_lanes(hq), sqq = add_lanes(hqq), sw = add_lanes(hw), sqw = add_lanes(hqw);
        float determinant = s * sqq - sq * sq;
        if (!(determinant > 1e-6f * (s * sqq))) return;
        float scale = rounded16((s * sqw - sq * sw) / determinant);
        float minimum = rounded16((sqq * sw - sq * sqw) / determinant);
        if (!consider(g, scale, minimum)) return;
    }
}

static void search(const struct rounding *job, struct group *g, int size) {
    float least = g->w[0], most = g->w[0];
    for (int i = 1; i < size; i++) {
        least = g->w[i] < least ? g->w[i] : least;
        most = g->w[i] > most ? g->w[i] : most;
    }
    g->error = __builtin_inff();
    if (job->minima == NULL) {
        float top = most >= -least ? most : least;
        consider(g, 0.0f, 0.0f);
        for (int c = 0; c < job->num_candidates; c++) consider(g, rounded16(top / job->candidates[c]), 0.0f);
        mend_symmetric(g);
        return;
    }
    float middle = (least + most) * 0.5f, steps = g->high - g->low;
    consider(g, 0.0f, rounded16(middle));
    for (int c = 0; c < job->num_candidates; c++) {
        float scale = rounded16((most - least) * job->candidates[c] / steps);
        consider(g, scale, rounded16(middle + 0.5f * scale));
    }
    mend_with_minimum(g);
}

static void round_rows(void *arg, int chunk, int thread) {
    const struct rounding *job = arg;
    (void)thread;
    struct group g = {.low = -(float)(1 << (job->bits - 1)), .high = (float)((1 << (job->bits - 1)) - 1)};
    int groups = (job->k + job->group - 1) / job->group;
    int end = chunk * ROWS + ROWS < job->n ? chunk * ROWS + ROWS : job->n;
    for (int row = chunk * ROWS; row < end; row++)
        for (int index = 0; index < groups; index++) {
            int start = index * job->group, size = job->k - start < job->group ? job->k - start : job->group;
            const float *from = job->weights + (int64_t)row * job->k + start;
            g.lanes = (size + 15) / 16 * 16;
            for (int i = 0; i < g.lanes; i++) {
                g.w[i] = i < size ? from[i] : 0.0f;
                g.h[i] = i >= size ? 0.0f : job->importance == NULL ? 1.0f : job->importance[start + i];
            }
            search(job, &g, size);
            write_codes(&g);
            int8_t *codes = job->codes + (int64_t)row * job->k + start;
            for (int i = 0; i < size; i++) codes[i] = (int8_t)g.code[i];
            job->scales[(int64_t)row * groups + index] = bits16(g.scale);
            if (job->minima != NULL) job->minima[(int64_t)row * groups + index] = bits16(g.minimum);
        }
}

/* See the header. */
EXPORT void round_groups(struct pool *pool, struct rounding *job) {
    pool_run(pool, round_rows, job, (job->n + ROWS - 1) / ROWS);
}
