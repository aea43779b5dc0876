/* Computes:  logits (m, n) = x (m, k) W^T of a head in a split kind, reading all of W only where it can matter.
 * Arguments: x float32; head: W as its upper bits (top) and all of its bits (split), and what head_prepare found;
 *            all (m), or NULL: not 0 for a token whose every logit matters.
 * Requires:  k % 32 == 0 (256 for Q6_K); m <= ws->max_tokens.
 * Launch:    one pass of all tiles over the upper bits, then the tiles that may hold a logit that matters: the best
 *            one, and those above `depth` below log sum e^logit, whose probability is more than e^-depth.
 * Numerics:  the error of the first pass is a sum of k independent roundings, so it is normal; its deviation for row n
 *            is spread[n] sqrt(sum channel[k] x[k]^2), found true within 4 % on real hidden states. Rows that may
 *            matter within 6 deviations are computed from all bits, bit for bit as linear.c would, with the rest of
 *            their tile: a row that matters is missed once in 10^9. Other rows get the first pass's value, lowered by
 *            half the variance, so that the mean of e^logit, and with it the probability of the tail, stays right.
 * Oracle:    tests/kernels/cpu/test_head.py: all rows that matter equal linear.c's.
 * Measured:  kernels/README.md; reads 40 to 60 % of a Q6_K or Q8_0 head.
 * Source:    own. */
#include <math.h>

#include "workspace.h"

#define DEVIATIONS 6.0f
#define FIRST 4        /* tiles whose exact logits give the first bound of the best one */
#define SAMPLE 16      /* every so manieth tile tells how the error spreads over k */
#define TILES_A_CHUNK 8
#define SUM_VALUES 4096

struct head {
    struct part split, top;
    float *spread;  /* (n): norm of what the upper bits leave out of a row */
    float *channel; /* (k): the share of each k in its square, summing to 1 */
    float *upper;   /* (4, tiles): the largest value that a token may have in a tile */
    int32_t *list;  /* (tiles) */
    float *sums;    /* (chunks of SUM_VALUES): of e^(logit - best), rough */
    float depth;
};

struct head_job {
    struct workspace *ws;
    const struct head *head;
    float *out;
    int64_t out_stride;
    int tiles, per_chunk, width, listed;
    float deviation[4], least[4];
    const float *row; /* for the sum over all logits of a token */
    float best;
};

static void rough_chunk(void *arg, int chunk, int thread) {
    const struct head_job *job = arg;
    const struct head *head = job->head;
    (void)thread;
    int end = (chunk + 1) * job->per_chunk;
    for (int tile = chunk * job->per_chunk; tile < end && tile < job->tiles; tile++) {
        float sums[4 * TILE];
        split_tile(&head->top, tile, &job->ws->acts, job->width, sums);
        for (int t = 0; t < job->width; t++) {
            vf most = vf_set1(-INFINITY);
            for (int h = 0; h < PARTS; h++) {
                int row = tile * TILE + h * LANES, n = head->top.n - row;
                if (n <= 0) break;
                vf value = vf_mul(vf_load(sums + t * TILE + h * LANES), vf_set1(8.0f));
                vf deviation = vf_mul(vf_load_first(head->spread + row, n), vf_set1(job->deviation[t]));
                vf lowered = vf_fma(vf_mul(deviation, deviation), vf_set1(-0.5f), value);
                vf_store_first(job->out + t * job->out_stride + row, lowered, n);
                value = vf_fma(deviation, vf_set1(DEVIATIONS), value);
                most = vf_max(most, vf_keep_first(value, n, -INFINITY));
            }
            head->upper[(int64_t)t * job->tiles + tile] = vf_largest(most);
        }
    }
}

/* The exact logits of a tile, for the tokens that may need them; returns the largest of token `of`. */
static float exact_tile(const struct head_job *job, int tile, int of) {
    const struct head *head = job->head;
    float sums[4 * TILE], largest = -INFINITY;
    int row = tile * TILE, n = head->split.n - row < TILE ? head->split.n - row : TILE;
    split_tile(&head->split, tile, &job->ws->acts, job->width, sums);
    for (int t = 0; t < job->width; t++) {
        if (t != of && !(head->upper[(int64_t)t * job->tiles + tile] >= job->least[t])) continue;
        memcpy(job->out + t * job->out_stride + row, sums + t * TILE, sizeof(float) * (size_t)n);
        for (int i = 0; t == of && i < n; i++) largest = sums[t * TILE + i] > largest ? sums[t * TILE + i] : largest;
    }
    return largest;
}

static void exact_chunk(void *arg, int chunk, int thread) {
    const struct head_job *job = arg;
    (void)thread;
    for (int i = chunk * TILES_A_CHUNK; i < (chunk + 1) * TILES_A_CHUNK && i < job->listed; i++)
        exact_tile(job, job->head->list[i], -1);
}

/* A value that the best logit of a token has at least: the best of the most promising tiles. */
static float bound_of(const struct head_job *job, int t) {
    const float *upper = job->head->upper + (int64_t)t * job->tiles;
    int best[FIRST], found = 0;
    for (int tile = 0; tile < job->tiles; tile++) {
        int at = found < FIRST ? found++ : FIRST;
        while (at > 0 && upper[tile] > upper[best[at - 1]]) {
            if (at < FIRST) best[at] = best[at - 1];
            at--;
        }
        if (at < FIRST) best[at] = tile;
    }
    float bound = -INFINITY;
    for (int i = 0; i < found; i++) {
        float largest = exact_tile(job, best[i], t);
        bound = largest > bound ? largest : bound;
    }
    return bound;
}

static void sum_chunk(void *arg, int chunk, int thread) {
    const struct head_job *job = arg;
    int start = chunk * SUM_VALUES, n = job->head->top.n - start;
    vf sum = vf_set1(0.0f);
    (void)thread;
    for (int i = 0; i < SUM_VALUES && i < n; i += LANES) {
        vf e = vf_exp(vf_sub(vf_load_first(job->row + start + i, n - i), vf_set1(job->best)));
        sum = vf_add(sum, vf_keep_first(e, n - i, 0.0f));
    }
    job->head->sums[chunk] = vf_sum(sum);
}

/* log sum e^logit of a token, of what is known of its logits. */
static float log_sum(struct head_job *job, int t, float best) {
    int chunks = (job->head->top.n + SUM_VALUES - 1) / SUM_VALUES;
    double sum = 0.0;
    job->row = job->out + t * job->out_stride;
    job->best = best;
    pool_run(job->ws->pool, sum_chunk, job, chunks);
    for (int i = 0; i < chunks; i++) sum += job->head->sums[i];
    return best + (float)log(sum);
}

static void head_block(struct head_job *job, const float *x, const uint8_t *all) {
    const struct head *head = job->head;
    int k = head->top.k, width = job->width, chunks = pool_threads(job->ws->pool) * 8;
    quantize_rows(job->ws, x, k, width, k);
    for (int t = 0; t < width; t++) {
        double sum = 0.0;
        for (int i = 0; i < k; i++) sum += (double)head->channel[i] * x[t * k + i] * x[t * k + i];
        job->deviation[t] = (float)sqrt(sum);
        job->least[t] = INFINITY;
    }
    job->per_chunk = (job->tiles + chunks - 1) / chunks;
    pool_run(job->ws->pool, rough_chunk, job, (job->tiles + job->per_chunk - 1) / job->per_chunk);
    float least[4];
    for (int t = 0; t < width; t++) {
        float best = bound_of(job, t), likely = log_sum(job, t, best) - head->depth;
        least[t] = all && all[t] ? -INFINITY : likely < best ? likely : best;
    }
    memcpy(job->least, least, sizeof least);
    job->listed = 0;
    for (int tile = 0; tile < job->tiles; tile++) {
        int needed = 0;
        for (int t = 0; t < width; t++) needed |= head->upper[(int64_t)t * job->tiles + tile] >= least[t];
        if (needed) head->list[job->listed++] = tile;
    }
    pool_run(job->ws->pool, exact_chunk, job, (job->listed + TILES_A_CHUNK - 1) / TILES_A_CHUNK);
}

void head_logits(struct workspace *ws, const struct head *head, const float *x, int m, const uint8_t *all, float *out,
                 int64_t out_stride) {
    for (int t = 0; t < m;) {
        int width = block_width(m - t) > 4 ? 4 : block_width(m - t);
        struct head_job job = {.ws = ws, .head = head, .out = out + t * out_stride, .out_stride = out_stride,
                               .tiles = tiles_of(head->top.n), .width = width};
        head_block(&job, x + (int64_t)t * head->top.k, all ? all + t : NULL);
        t += width;
    }
}

/* What the upper bits leave out of a group, for each of its rows: sum over k of (lower bits - 8)^2 scale^2. */
static vf left_out(const struct group *w, int q6) {
    const vi low = vi_set1(0x0f0f0f0f), ones = vi_set1(0x01010101), none = vi_set1(0);
    vf total = vf_set1(0.0f);
    for (int half = 0; half < 2; half++) {
        vi squares = none, sums = none;
        for (int i = half * 4; i < half * 4 + 4; i += 2) {
            vi a = vi_and(w->w[i], low), b = vi_and(w->w[i + 1], low);
            squares = dot_pair(squares, a, b, a, b, 6);
            sums = dot_pair(sums, a, b, ones, ones, 6);
        }
        vi all = vi_add(vi_sub(squares, vi_shl(sums, 4)), vi_set1(16 * 64));
        vf scale = half && q6 ? w->scale1 : w->scale;
        total = vf_fma(vf_from_vi(all), vf_mul(scale, scale), total);
    }
    return total;
}

static void spread_chunk(void *arg, int chunk, int thread) {
    const struct head_job *job = arg;
    const struct part *p = &job->head->split;
    int q6 = p->kind == Q6_SPLIT;
    (void)thread;
    for (int tile = chunk * TILES_A_CHUNK; tile < (chunk + 1) * TILES_A_CHUNK && tile < job->tiles; tile++)
        for (int h = 0; h < PARTS; h++) {
            int row = tile * TILE + h * LANES;
            vf sum = vf_set1(0.0f);
            for (int i = 0; i < p->k / GROUP; i++) {
                struct group w;
                load_part_group(p, tile, i, h, &w);
                sum = vf_add(sum, left_out(&w, q6));
            }
            float squares[LANES];
            vf_store(squares, sum);
            for (int r = 0; r < LANES && row + r < p->n; r++) job->head->spread[row + r] = sqrtf(squares[r]);
        }
}

/* Adds a sampled tile's errors, each row's as shares of its own, to sums (k). */
static void add_channels(const struct head *head, int tile, double *sums) {
    const struct part *p = &head->split;
    int q6 = p->kind == Q6_SPLIT;
    for (int h = 0; h < PARTS; h++)
        for (int i = 0; i < p->k / GROUP; i++) {
            struct group w;
            uint8_t bytes[LANES * 4];
            float scale[2][LANES];
            load_part_group(p, tile, i, h, &w);
            vf_store(scale[0], w.scale);
            vf_store(scale[1], q6 ? w.scale1 : w.scale);
            for (int j = 0; j < GROUP; j++) {
                if (j % 4 == 0) vi_store(bytes, w.w[j / 4]);
                for (int r = 0; r < LANES; r++) {
                    int row = tile * TILE + h * LANES + r;
                    if (row >= p->n || head->spread[row] == 0.0f) continue;
                    double e = ((bytes[4 * r + j % 4] & 15) - 8) * (double)scale[j / 16][r] / head->spread[row];
                    sums[i * GROUP + j] += e * e;
                }
            }
        }
}

/* Fills spread and channel of a head whose parts are packed. `sums`: k doubles of work space. */
EXPORT void head_prepare(struct pool *pool, const struct head *head, double *sums) {
    struct head_job job = {.head = head, .tiles = tiles_of(head->split.n)};
    double all = 0.0;
    pool_run(pool, spread_chunk, &job, (job.tiles + TILES_A_CHUNK - 1) / TILES_A_CHUNK);
    memset(sums, 0, sizeof(double) * (size_t)head->split.k);
    for (int tile = 0; tile < job.tiles; tile += SAMPLE) add_channels(head, tile, sums);
    for (int i = 0; i < head->split.k; i++) all += sums[i];
    for (int i = 0; i < head->split.k; i++) head->channel[i] = all > 0.0 ? (float)(sums[i] / all) : 0.0f;
}
