/* Computes:  RMSNorm; RoPE's angles; per-head norm, rotation and KV append of a step's Q, K and V.
 * Arguments: x, qkv float32; keys and values float16 pages (step.h); cosines and sines (m, head_dim / 2) float32.
 * Requires:  head_dim even; every position's page in the table; page_size slots in each page.
 * Launch:    a chunk 16 tokens; fewer tokens stay on the caller, since waking costs more.
 * Numerics:  float32 sums in lanes, added in a fixed order; angles in float64; float16 values are held to +-65504.
 * Oracle:    float64 formulas in tests/kernels/cpu/test_elementwise.py.
 * Measured:  kernels/README.md.
 * Source:    RoPE: Su et al. 2021, half-split pairs; RMSNorm: Zhang and Sennrich 2019. */
#include <math.h>

#include "step.h"

#define CHUNK 16

static void norm_row(const float *x, const float *weight, float eps, int k, float *out) {
    vf sums[4] = {vf_set1(0.0f), vf_set1(0.0f), vf_set1(0.0f), vf_set1(0.0f)};
    int i = 0;
    for (; i + 4 * LANES <= k; i += 4 * LANES)
        for (int j = 0; j < 4; j++) {
            vf v = vf_load(x + i + j * LANES);
            sums[j] = vf_fma(v, v, sums[j]);
        }
    for (; i < k; i += LANES) {
        vf v = vf_load_first(x + i, k - i);
        sums[0] = vf_fma(v, v, sums[0]);
    }
    float sum = vf_sum(vf_add(vf_add(sums[0], sums[1]), vf_add(sums[2], sums[3])));
    vf inverse = vf_set1(1.0f / sqrtf(sum / (float)k + eps));
    for (i = 0; i < k; i += LANES) {
        vf v = vf_mul(vf_mul(vf_load_first(x + i, k - i), inverse), vf_load_first(weight + i, k - i));
        vf_store_first(out + i, v, k - i);
    }
}

struct norm_job {
    const float *x, *weight;
    float *out, eps;
    int m, k;
};

static void norm_chunk(void *arg, int chunk, int thread) {
    const struct norm_job *job = arg;
    (void)thread;
    for (int t = chunk * CHUNK; t < (chunk + 1) * CHUNK && t < job->m; t++)
        norm_row(job->x + (int64_t)t * job->k, job->weight, job->eps, job->k, job->out + (int64_t)t * job->k);
}

void rms_norm(struct workspace *ws, const float *x, const float *weight, float eps, int m, int k, float *out) {
    struct norm_job job = {x, weight, out, eps, m, k};
    pool_run(ws->pool, norm_chunk, &job, (m + CHUNK - 1) / CHUNK);
}

void rope_angles(const struct step *step) {
    int half = step->head_dim / 2;
    for (int t = 0; t < step->m; t++)
        for (int i = 0; i < half; i++) {
            double angle = (double)step->positions[t] * step->inv_freq[i];
            step->cosines[(int64_t)t * half + i] = (float)cos(angle);
            step->sines[(int64_t)t * half + i] = (float)sin(angle);
        }
}

/* One head in place. */
static void rotate(float *x, const float *weight, float eps, int dim, const float *cosines, const float *sines) {
    int half = dim / 2;
    if (weight) norm_row(x, weight, eps, dim, x);
    for (int i = 0; i < half; i += LANES) {
        int n = half - i;
        vf a = vf_load_first(x + i, n), b = vf_load_first(x + half + i, n);
        vf c = vf_load_first(cosines + i, n), s = vf_load_first(sines + i, n);
        vf_store_first(x + i, vf_sub(vf_mul(a, c), vf_mul(b, s)), n);
        vf_store_first(x + half + i, vf_add(vf_mul(b, c), vf_mul(a, s)), n);
    }
}

/* n values, at least 0, as float16; writes up to the next multiple of 16 (zeros behind n). */
static void to_f16(const float *x, int n, uint16_t *out) {
    vf top = vf_set1(65504.0f), bottom = vf_set1(-65504.0f);
    for (int i = 0; i < round16(n); i += LANES)
        vf_store_f16(out + i, vf_max(vf_min(vf_load_first(x + i, n - i > 0 ? n - i : 0), top), bottom));
}

struct rope_job {
    const struct step *step;
    float *qkv;
    int64_t stride;
    const float *q_norm, *k_norm;
    uint16_t *keys, *values;
};

static int sequence_of(const struct step *step, int token) {
    int s = 0;
    while (token >= step->query_starts[s + 1]) s++;
    return s;
}

static void append_token(const struct rope_job *job, int t) {
    const struct step *st = job->step;
    int dim = st->head_dim, half = dim / 2, position = st->positions[t];
    const float *cosines = st->cosines + (int64_t)t * half, *sines = st->sines + (int64_t)t * half;
    float *q = job->qkv + (int64_t)t * job->stride, *k = q + st->q_heads * dim, *v = k + st->kv_heads * dim;
    for (int h = 0; h < st->q_heads; h++) rotate(q + h * dim, job->q_norm, st->norm_eps, dim, cosines, sines);
    const int32_t *table = st->page_tables + (int64_t)sequence_of(st, t) * st->max_pages;
    int64_t page = table[position / st->page_size], slot = position % st->page_size;
    uint16_t row[1024];
    for (int h = 0; h < st->kv_heads; h++) {
        rotate(k + h * dim, job->k_norm, st->norm_eps, dim, cosines, sines);
        to_f16(k + h * dim, dim, row);
        uint16_t *key = job->keys + (page * st->kv_heads + h) * dim * st->page_size + slot;
        for (int d = 0; d < dim; d++) key[(int64_t)d * st->page_size] = row[d];
        to_f16(v + h * dim, dim, job->values + ((page * st->kv_heads + h) * st->page_size + slot) * st->value_dim);
    }
}

static void rope_chunk(void *arg, int chunk, int thread) {
    const struct rope_job *job = arg;
    (void)thread;
    for (int t = chunk * CHUNK; t < (chunk + 1) * CHUNK && t < job->step->m; t++) append_token(job, t);
}

void rope_append(struct workspace *ws, const struct step *step, float *qkv, int64_t stride, const float *q_norm,
                 const float *k_norm, uint16_t *keys, uint16_t *values) {
    struct rope_job job = {step, qkv, stride, q_norm, k_norm, keys, values};
    pool_run(ws->pool, rope_chunk, &job, (step->m + CHUNK - 1) / CHUNK);
}
