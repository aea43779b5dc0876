/* Memory that the kernels work in. The caller allocates all of it and counts every byte (layouts.workspace_bytes). */
#pragma once
#include "pool.h"
#include "weights.h"

/* Activations of m tokens in int8. Tokens lie in blocks of 8, then 4, 2 and 1 for the rest; in a block of width w the
 * 4 bytes of quad i of token j are at (i * w + j) * 4, the values of group g at g * w + j. Block t0 starts at
 * t0 * k. */
struct activations {
    int8_t *q;
    float *scale; /* of each group of 32 */
    float *sum;   /* scale times the group's sum */
    int32_t *neg; /* minus the group's sum */
    int32_t *neg16; /* minus the sum of each 16 */
};

struct workspace {
    struct pool *pool;
    int32_t max_tokens, max_k;
    struct activations acts;
    uint8_t *scratch; /* scratch_stride bytes for each thread */
    int64_t scratch_stride;
    float *partials; /* attention: what the splits of a long context found */
    int64_t partial_floats;
};

struct linear {
    int32_t parts, k, columns, reserved;
    const struct part *part;
};

enum linear_mode { LINEAR_STORE, LINEAR_ADD, LINEAR_GATED };

INLINE int block_width(int left) { return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

void quantize_rows(struct workspace *ws, const float *x, int64_t stride, int m, int k);
void split_tile(const struct part *part, int tile, const struct activations *acts, int width, float *out);
void part_tile(const struct workspace *ws, const struct part *part, int tile, const float *x, int64_t stride, int m,
               uint8_t *scratch, float *out);
void linear(struct workspace *ws, const struct linear *w, const float *x, int64_t stride, int m, float *out,
            int64_t out_stride, int mode);
