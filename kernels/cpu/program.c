/* Computes:  a list of operations, one after the other: one call runs a whole step.
 * Arguments: ops (count); what a, b, c, d and out mean is written at each kind below.
 * Requires:  what each operation requires; arrays that do not overlap, but where an operation works in place.
 * Launch:    on the calling thread, which hands chunks to the pool.
 * Numerics:  those of the operations.
 * Oracle:    tests/inference/backends/test_cpu_backend.py: a replayed step equals the same calls made one by one.
 * Measured:  the call itself takes under 2 us.
 * Source:    own. */
#include "step.h"

enum op_kind {
    OP_EMBED,       /* a: int32 ids (m), b: struct part, out (m, k) */
    OP_RMS_NORM,    /* a: x (m, k), b: weight, value: eps, out (m, k) */
    OP_LINEAR,      /* a: x, b: struct linear, out; mode */
    OP_ROPE_ANGLES, /* the step's positions to its cosines and sines */
    OP_ROPE_APPEND, /* out: qkv in place, a: q norm, b: k norm, c: keys, d: values */
    OP_ATTENTION,   /* a: q, c: keys, d: values, out */
    OP_TAKE_ROWS,   /* a: x (any, k), b: int32 rows (m), out (m, k) */
    OP_LOGITS,      /* a: x (m, k), b: struct head, c: uint8 (m), whose logits all matter, or NULL, out */
};

struct head;

struct op {
    int32_t kind, m, k, mode;
    const void *a, *b;
    void *c, *d, *out;
    int64_t stride, out_stride; /* floats from row to row of a and of out */
    double value;
};

void read_rows(const struct part *part, const int32_t *ids, int m, float *out);
void head_logits(struct workspace *ws, const struct head *head, const float *x, int m, const uint8_t *all, float *out,
                 int64_t out_stride);

static void run(struct workspace *ws, const struct step *step, const struct op *op) {
    switch (op->kind) {
    case OP_EMBED:
        read_rows(op->b, op->a, op->m, op->out);
        break;
    case OP_RMS_NORM:
        rms_norm(ws, op->a, op->b, (float)op->value, op->m, op->k, op->out);
        break;
    case OP_LINEAR:
        linear(ws, op->b, op->a, op->stride, op->m, op->out, op->out_stride, op->mode);
        break;
    case OP_ROPE_ANGLES:
        rope_angles(step);
        break;
    case OP_ROPE_APPEND:
        rope_append(ws, step, op->out, op->out_stride, op->a, op->b, op->c, op->d);
        break;
    case OP_ATTENTION:
        attention(ws, step, op->a, op->stride, op->c, op->d, op->out, op->out_stride);
        break;
    case OP_LOGITS:
        head_logits(ws, op->b, op->a, op->m, op->c, op->out, op->out_stride);
        break;
    case OP_TAKE_ROWS:
        for (int i = 0; i < op->m; i++)
            memcpy((float *)op->out + (int64_t)i * op->k,
                   (const float *)op->a + ((const int32_t *)op->b)[i] * (int64_t)op->k, sizeof(float) * (size_t)op->k);
        break;
    }
}

EXPORT void run_ops(struct workspace *ws, const struct step *step, const struct op *ops, int count) {
    for (int i = 0; i < count; i++) run(ws, step, &ops[i]);
}

/* For the tests of the quantization alone. */
EXPORT void quantize(struct workspace *ws, const float *x, int64_t stride, int m, int k) {
    quantize_rows(ws, x, stride, m, k);
}
