/* Computes:  x (m, k) float32 -> int8 in groups of 32 with a float32 scale: q = round(x / scale), scale = max|x| / 127.
 * Arguments: x: rows of `stride` floats; the result goes to ws->acts, laid out as workspace.h says.
 * Requires:  k % 32 == 0; m <= ws->max_tokens; k <= ws->max_k.
 * Launch:    one chunk for each block of 8 tokens; up to 4 tokens on the caller alone, since waking costs more.
 * Numerics:  float32; ties to even; a group of zeros has scale 0. A row's bytes depend on nothing but the row.
 * Oracle:    tests/kernels/cpu/test_linear.py: |x - scale q| <= scale / 2, and the sums.
 * Measured:  kernels/README.md.
 * Source:    own; groups of 32 as in ggml's Q8_1. */
#include "workspace.h"

struct quantize_job {
    struct activations *acts;
    const float *x;
    int64_t stride;
    int m, k;
};

static void quantize_token(const struct quantize_job *job, int t0, int width, int j) {
    struct activations *a = job->acts;
    const float *x = job->x + (int64_t)(t0 + j) * job->stride;
    int64_t groups = job->k / GROUP;
    int8_t *q = a->q + (int64_t)t0 * job->k, bytes[GROUP + 16];
    for (int64_t g = 0; g < groups; g++, x += GROUP) {
        vf largest = vf_abs(vf_load(x));
        for (int i = LANES; i < GROUP; i += LANES) largest = vf_max(largest, vf_abs(vf_load(x + i)));
        float top = vf_largest(largest), inverse = top > 0.0f ? 127.0f / top : 0.0f;
        vi half[2] = {vi_set1(0), vi_set1(0)};
        for (int i = 0; i < GROUP; i += LANES) {
            vi v = vi_from_vf(vf_mul(vf_load(x + i), vf_set1(inverse)));
            half[i / 16] = vi_add(half[i / 16], v);
            vi_store_i8(bytes + i, v);
        }
        int32_t low = vi_sum(half[0]), high = vi_sum(half[1]);
        for (int i = 0; i < 8; i++) memcpy(q + ((g * 8 + i) * width + j) * 4, bytes + 4 * i, 4);
        int64_t at = t0 * groups + g * width + j, at16 = 2 * t0 * groups + 2 * g * width + j;
        a->scale[at] = top / 127.0f;
        a->sum[at] = top / 127.0f * (float)(low + high);
        a->neg[at] = -(low + high);
        a->neg16[at16] = -low;
        a->neg16[at16 + width] = -high;
    }
}

static void quantize_block(void *arg, int chunk, int thread) {
    struct quantize_job *job = arg;
    (void)thread;
    int end = chunk * 8 + 8 < job->m ? chunk * 8 + 8 : job->m;
    for (int t0 = chunk * 8; t0 < end;) {
        int width = block_width(job->m - t0);
        for (int j = 0; j < width; j++) quantize_token(job, t0, width, j);
        t0 += width;
    }
}

void quantize_rows(struct workspace *ws, const float *x, int64_t stride, int m, int k) {
    struct quantize_job job = {&ws->acts, x, stride, m, k};
    int chunks = (m + 7) / 8;
    if (m <= 4) quantize_block(&job, 0, 0);
    else pool_run(ws->pool, quantize_block, &job, chunks);
}
