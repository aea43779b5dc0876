/* What the operations of one step share: the batch, the model's attention shape and where KV lies. */
#pragma once
#include "workspace.h"

/* KV of one layer, float16: keys (pages, kv_heads, head_dim, page_size), values (pages, kv_heads, page_size, value_dim)
 * with value_dim = head_dim rounded up to 16. Keys lie with positions innermost, so that scores need no sum across
 * lanes. */
struct step {
    int32_t m, sequences, max_pages, page_size;
    int32_t q_heads, kv_heads, head_dim, value_dim;
    float norm_eps, scale;
    const int32_t *positions, *query_starts, *context_lengths, *page_tables;
    const double *inv_freq;
    float *cosines, *sines; /* (m, head_dim / 2) */
};

INLINE int round16(int v) { return (v + 15) / 16 * 16; }

void rms_norm(struct workspace *ws, const float *x, const float *weight, float eps, int m, int k, float *out);
void rope_angles(const struct step *step);
void rope_append(struct workspace *ws, const struct step *step, float *qkv, int64_t stride, const float *q_norm,
                 const float *k_norm, uint16_t *keys, uint16_t *values);
void attention(struct workspace *ws, const struct step *step, const float *q, int64_t stride, const uint16_t *keys,
               const uint16_t *values, float *out, int64_t out_stride);
