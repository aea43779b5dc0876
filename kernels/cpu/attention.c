/* Computes:  causal attention of each token over its sequence's pages: softmax(scale q K^T) V, for every query head.
 * Arguments: q: float32 rows of `stride`; keys, values: float16 pages (step.h); out: float32 rows of `out_stride`.
 * Requires:  page_size 64, head_dim at most 1024; the step's own K and V already appended.
 * Launch:    a chunk up to 32 rows of (token, head) that share a KV head. A long context of few rows is split: chunks
 *            of 512 positions leave (max, sum, values) behind, and the caller merges them in order.
 * Numerics:  float32, online softmax page by page, a fresh start every 512 positions, merged in order: a row is the
 *            same operations alone, in a batch, split or not. Slots at and behind a row's limit never reach its sums:
 *            they may hold NaN.
 * Oracle:    float64 softmax in tests/kernels/cpu/test_attention.py.
 * Measured:  kernels/README.md.
 * Source:    online softmax: Milakov and Gimelshein 2018; splitting over KV: Dao et al. 2023 (Flash-Decoding). */
#include <math.h>

#include "step.h"

#define PAGE 64
#define ROWS 32
#define SPLIT_PAGES 8
#define WIDE (LANES == 16 ? 4 : 2) /* vectors beside each other in the inner products */

struct attend_scratch {
    float *keys, *values, *q, *scores, *part, *total;
    float max[ROWS], sum[ROWS], total_max[ROWS], total_sum[ROWS];
};

struct attend_job {
    struct workspace *ws;
    const struct step *step;
    const float *q;
    int64_t stride, out_stride;
    const uint16_t *keys, *values;
    float *out;
    int splits; /* 0: each chunk does all of its pages */
};

struct attend_block {
    int sequence, kv_head, first, rows; /* rows: (token, head of the group), token by token */
    int chunk_tokens, limit[ROWS];
};

INLINE vf load_kv(const void *p, int64_t i, const int half) {
    return half ? vf_load_f16((const uint16_t *)p + i) : vf_load((const float *)p + i);
}

/* scores (rows, 64) = q (rows, dim) keys (dim, 64) */
INLINE void score_rows(const int n, const int half, const float *q, const void *keys, int dim, float *scores) {
    for (int c = 0; c < PAGE; c += WIDE * LANES) {
        vf s[4][WIDE];
        for (int r = 0; r < n; r++)
            for (int w = 0; w < WIDE; w++) s[r][w] = vf_set1(0.0f);
        for (int d = 0; d < dim; d++) {
            vf k[WIDE];
            for (int w = 0; w < WIDE; w++) k[w] = load_kv(keys, (int64_t)d * PAGE + c + w * LANES, half);
            for (int r = 0; r < n; r++) {
                vf x = vf_repeat(q + r * dim + d);
                for (int w = 0; w < WIDE; w++) s[r][w] = vf_fma(x, k[w], s[r][w]);
            }
        }
        for (int r = 0; r < n; r++)
            for (int w = 0; w < WIDE; w++) vf_store(scores + r * PAGE + c + w * LANES, s[r][w]);
    }
}

/* out (rows, value_dim) += p (rows, 64) values (count, value_dim) */
INLINE void value_rows(const int n, const int half, const float *p, const void *values, int count, int dim,
                       float *out) {
    int d = 0;
    for (; d + WIDE * LANES <= dim; d += WIDE * LANES) {
        vf s[4][WIDE];
        for (int r = 0; r < n; r++)
            for (int w = 0; w < WIDE; w++) s[r][w] = vf_load(out + r * dim + d + w * LANES);
        for (int j = 0; j < count; j++) {
            vf v[WIDE];
            for (int w = 0; w < WIDE; w++) v[w] = load_kv(values, (int64_t)j * dim + d + w * LANES, half);
            for (int r = 0; r < n; r++) {
                vf x = vf_repeat(p + r * PAGE + j);
                for (int w = 0; w < WIDE; w++) s[r][w] = vf_fma(x, v[w], s[r][w]);
            }
        }
        for (int r = 0; r < n; r++)
            for (int w = 0; w < WIDE; w++) vf_store(out + r * dim + d + w * LANES, s[r][w]);
    }
    for (; d < dim; d += LANES)
        for (int r = 0; r < n; r++) {
            vf s = vf_load(out + r * dim + d);
            for (int j = 0; j < count; j++)
                s = vf_fma(vf_repeat(p + r * PAGE + j), load_kv(values, (int64_t)j * dim + d, half), s);
            vf_store(out + r * dim + d, s);
        }
}

#define BY_ROWS(name, half, rows, call1, call2, call4)                                                                 \
    for (int r = 0; r < rows;) {                                                                                       \
        int left = rows - r;                                                                                           \
        if (left >= 4) { call4; r += 4; }                                                                              \
        else if (left >= 2) { call2; r += 2; }                                                                         \
        else { call1; r += 1; }                                                                                        \
    }

INLINE void all_scores(const int half, const float *q, const void *keys, int dim, int rows, float *scores) {
    BY_ROWS(score_rows, half, rows, score_rows(1, half, q + r * dim, keys, dim, scores + r * PAGE),
            score_rows(2, half, q + r * dim, keys, dim, scores + r * PAGE),
            score_rows(4, half, q + r * dim, keys, dim, scores + r * PAGE))
}

INLINE void all_values(const int half, const float *p, const void *values, int count, int dim, int rows, float *out) {
    BY_ROWS(value_rows, half, rows, value_rows(1, half, p + r * PAGE, values, count, dim, out + r * dim),
            value_rows(2, half, p + r * PAGE, values, count, dim, out + r * dim),
            value_rows(4, half, p + r * PAGE, values, count, dim, out + r * dim))
}

static void scale_row(float *x, float by, int n) {
    for (int i = 0; i < n; i += LANES) vf_store(x + i, vf_mul(vf_load(x + i), vf_set1(by)));
}

/* Turns a row's scores of a page into weights; `count` of them are within the row's limit. */
static void soften(struct attend_scratch *s, int r, int count, int value_dim) {
    float *p = s->scores + r * PAGE;
    vf none = vf_set1(-INFINITY), top = none;
    if (count <= 0) {
        for (int i = 0; i < PAGE; i += LANES) vf_store(p + i, vf_set1(0.0f));
        return;
    }
    for (int i = 0; i < PAGE; i += LANES) top = vf_max(top, vf_keep_first(vf_load(p + i), count - i, -INFINITY));
    float before = s->max[r], max = vf_largest(top);
    if (before > max) max = before;
    vf sums = vf_set1(0.0f);
    for (int i = 0; i < PAGE; i += LANES) {
        vf e = vf_keep_first(vf_exp(vf_sub(vf_load(p + i), vf_set1(max))), count - i, 0.0f);
        sums = vf_add(sums, e);
        vf_store(p + i, e);
    }
    if (before != -INFINITY && before != max) {
        float by = exp_one(before - max);
        s->sum[r] *= by;
        scale_row(s->part + r * value_dim, by, value_dim);
    }
    s->max[r] = max;
    s->sum[r] += vf_sum(sums);
}

/* Pages [first, last) of a block into s->max, sum, part. */
static void attend_pages(const struct attend_job *job, const struct attend_block *b, struct attend_scratch *s,
                         int first, int last) {
    const struct step *st = job->step;
    int dim = st->head_dim, value_dim = st->value_dim, limit = b->limit[b->rows - 1];
    const int32_t *table = st->page_tables + (int64_t)b->sequence * st->max_pages;
    for (int r = 0; r < b->rows; r++) s->max[r] = -INFINITY, s->sum[r] = 0.0f;
    memset(s->part, 0, sizeof(float) * (size_t)(b->rows * value_dim));
    for (int page = first; page < last && page * PAGE < limit; page++) {
        int count = limit - page * PAGE < PAGE ? limit - page * PAGE : PAGE;
        int64_t at = (int64_t)table[page] * st->kv_heads + b->kv_head;
        const uint16_t *keys = job->keys + at * dim * PAGE, *values = job->values + at * PAGE * value_dim;
        int half = b->rows <= 8;
        if (half) all_scores(1, s->q, keys, dim, b->rows, s->scores);
        else {
            for (int i = 0; i < dim * PAGE; i += LANES) vf_store(s->keys + i, vf_load_f16(keys + i));
            for (int i = 0; i < count * value_dim; i += LANES) vf_store(s->values + i, vf_load_f16(values + i));
            all_scores(0, s->q, s->keys, dim, b->rows, s->scores);
        }
        for (int r = 0; r < b->rows; r++) soften(s, r, b->limit[r] - page * PAGE, value_dim);
        if (half) all_values(1, s->scores, values, count, value_dim, b->rows, s->part);
        else all_values(0, s->scores, s->values, count, value_dim, b->rows, s->part);
    }
}

/* Takes one split's findings of a row into its total. */
static void merge(float *total_max, float *total_sum, float *total, float max, float sum, const float *part, int n) {
    if (sum == 0.0f) return;
    if (*total_sum == 0.0f) {
        *total_max = max, *total_sum = sum;
        memcpy(total, part, sizeof(float) * (size_t)n);
        return;
    }
    float top = *total_max > max ? *total_max : max;
    float old_by = exp_one(*total_max - top), new_by = exp_one(max - top);
    *total_max = top;
    *total_sum = *total_sum * old_by + sum * new_by;
    for (int i = 0; i < n; i += LANES)
        vf_store(total + i, vf_fma(vf_load(part + i), vf_set1(new_by), vf_mul(vf_load(total + i), vf_set1(old_by))));
}

static struct attend_scratch scratch_of(const struct attend_job *job, int thread) {
    const struct step *st = job->step;
    float *at = (float *)(job->ws->scratch + thread * job->ws->scratch_stride);
    struct attend_scratch s;
    s.keys = at, at += st->head_dim * PAGE;
    s.values = at, at += st->value_dim * PAGE;
    s.q = at, at += ROWS * st->head_dim;
    s.scores = at, at += ROWS * PAGE;
    s.part = at, at += ROWS * st->value_dim;
    s.total = at;
    return s;
}

/* Finds block `index` of all blocks, in the order of sequences, KV heads, rows. */
static struct attend_block block_at(const struct step *st, int index) {
    struct attend_block b = {0};
    int group = st->q_heads / st->kv_heads;
    for (;; b.sequence++) {
        b.chunk_tokens = st->query_starts[b.sequence + 1] - st->query_starts[b.sequence];
        int blocks = (b.chunk_tokens * group + ROWS - 1) / ROWS;
        if (index < blocks * st->kv_heads) {
            b.kv_head = index / blocks;
            b.first = index % blocks * ROWS;
            break;
        }
        index -= blocks * st->kv_heads;
    }
    int all = b.chunk_tokens * group;
    b.rows = all - b.first < ROWS ? all - b.first : ROWS;
    for (int r = 0; r < b.rows; r++)
        b.limit[r] = st->positions[st->query_starts[b.sequence] + (b.first + r) / group] + 1;
    return b;
}

static int64_t q_index(const struct step *st, const struct attend_block *b, int r, int64_t stride) {
    int group = st->q_heads / st->kv_heads, row = b->first + r;
    return (st->query_starts[b->sequence] + row / group) * stride + (b->kv_head * group + row % group) * st->head_dim;
}

static void load_q(const struct attend_job *job, const struct attend_block *b, struct attend_scratch *s) {
    const struct step *st = job->step;
    for (int r = 0; r < b->rows; r++) {
        const float *q = job->q + q_index(st, b, r, job->stride);
        for (int d = 0; d < st->head_dim; d++) s->q[r * st->head_dim + d] = q[d] * st->scale;
    }
}

static void write_row(const struct attend_job *job, const struct attend_block *b, int r, const float *total,
                      float sum) {
    float *out = job->out + q_index(job->step, b, r, job->out_stride);
    for (int d = 0; d < job->step->head_dim; d++) out[d] = total[d] / sum;
}

static void attend_chunk(void *arg, int chunk, int thread) {
    const struct attend_job *job = arg;
    struct attend_scratch s = scratch_of(job, thread);
    struct attend_block b = block_at(job->step, job->splits ? chunk / job->splits : chunk);
    int n = job->step->value_dim, split = job->splits ? chunk % job->splits : 0;
    load_q(job, &b, &s);
    if (job->splits) {
        attend_pages(job, &b, &s, split * SPLIT_PAGES, (split + 1) * SPLIT_PAGES);
        float *left = job->ws->partials + (int64_t)chunk * ROWS * (n + 2);
        for (int r = 0; r < b.rows; r++, left += n + 2) {
            memcpy(left, s.part + r * n, sizeof(float) * (size_t)n);
            left[n] = s.max[r], left[n + 1] = s.sum[r];
        }
        return;
    }
    for (int r = 0; r < b.rows; r++) s.total_max[r] = -INFINITY, s.total_sum[r] = 0.0f;
    for (int page = 0; page * PAGE < b.limit[b.rows - 1]; page += SPLIT_PAGES) {
        attend_pages(job, &b, &s, page, page + SPLIT_PAGES);
        for (int r = 0; r < b.rows; r++)
            merge(&s.total_max[r], &s.total_sum[r], s.total + r * n, s.max[r], s.sum[r], s.part + r * n, n);
    }
    for (int r = 0; r < b.rows; r++) write_row(job, &b, r, s.total + r * n, s.total_sum[r]);
}

static void merge_splits(const struct attend_job *job, int blocks) {
    struct attend_scratch s = scratch_of(job, 0);
    int n = job->step->value_dim;
    for (int i = 0; i < blocks; i++) {
        struct attend_block b = block_at(job->step, i);
        for (int r = 0; r < b.rows; r++) {
            float max = -INFINITY, sum = 0.0f;
            for (int split = 0; split < job->splits; split++) {
                const float *left = job->ws->partials + ((int64_t)(i * job->splits + split) * ROWS + r) * (n + 2);
                merge(&max, &sum, s.total, left[n], left[n + 1], left, n);
            }
            write_row(job, &b, r, s.total, sum);
        }
    }
}

void attention(struct workspace *ws, const struct step *step, const float *q, int64_t stride, const uint16_t *keys,
               const uint16_t *values, float *out, int64_t out_stride) {
    int blocks = 0, group = step->q_heads / step->kv_heads, longest = 0;
    for (int s = 0; s < step->sequences; s++) {
        int tokens = step->query_starts[s + 1] - step->query_starts[s];
        blocks += (tokens * group + ROWS - 1) / ROWS * step->kv_heads;
        if (step->context_lengths[s] > longest) longest = step->context_lengths[s];
    }
    int splits = (longest + SPLIT_PAGES * PAGE - 1) / (SPLIT_PAGES * PAGE), threads = pool_threads(ws->pool);
    int fits = (int64_t)blocks * splits * ROWS * (step->value_dim + 2) <= ws->partial_floats;
    int split = splits > 1 && threads > 1 && blocks < 4 * threads && fits;
    struct attend_job job = {ws, step, q, stride, out_stride, keys, values, out, split ? splits : 0};
    if (!split && blocks * longest < 256) /* too little to wake anyone for */
        for (int i = 0; i < blocks; i++) attend_chunk(&job, i, 0);
    else pool_run(ws->pool, attend_chunk, &job, blocks * (split ? splits : 1));
    if (split) merge_splits(&job, blocks);
}
