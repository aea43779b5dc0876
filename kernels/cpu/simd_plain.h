/* The vector types and operations of simd_avx512.h without intrinsics, for any CPU that clang knows: 4 lanes. */
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 4
#define DOT8_OFFSET 128
#define INLINE static inline __attribute__((always_inline))

typedef int32_t vi __attribute__((vector_size(16)));
typedef float vf __attribute__((vector_size(16)));
typedef uint32_t plain_u32 __attribute__((vector_size(16)));
typedef int8_t plain_i8 __attribute__((vector_size(16)));
typedef uint8_t plain_u8 __attribute__((vector_size(16)));
typedef int16_t plain_i16 __attribute__((vector_size(32)));
typedef int32_t plain_i32 __attribute__((vector_size(64)));

INLINE vi vi_load(const void *p) { vi v; memcpy(&v, p, 16); return v; }
INLINE void vi_store(void *p, vi v) { memcpy(p, &v, 16); }
INLINE vi vi_set1(int32_t v) { return (vi){v, v, v, v}; }
INLINE vi vi_and(vi a, vi b) { return a & b; }
INLINE vi vi_or(vi a, vi b) { return a | b; }
INLINE vi vi_add(vi a, vi b) { return (vi)((plain_u32)a + (plain_u32)b); }
INLINE vi vi_sub(vi a, vi b) { return (vi)((plain_u32)a - (plain_u32)b); }
INLINE vi vi_shr(vi v, int n) { return (vi)((plain_u32)v >> (uint32_t)n); }
INLINE vi vi_shl(vi v, int n) { return (vi)((plain_u32)v << (uint32_t)n); }
INLINE int32_t vi_sum(vi v) { return v[0] + v[1] + v[2] + v[3]; }
INLINE vi vi_load_i8(const int8_t *p) { return (vi){p[0], p[1], p[2], p[3]}; }
INLINE void vi_store_i8(int8_t *p, vi v) {
    for (int i = 0; i < 4; i++) p[i] = (int8_t)v[i];
}

INLINE vf vf_load(const float *p) { vf v; memcpy(&v, p, 16); return v; }
INLINE void vf_store(float *p, vf v) { memcpy(p, &v, 16); }
INLINE vf vf_set1(float v) { return (vf){v, v, v, v}; }
INLINE vf vf_load_first(const float *p, int n) {
    vf v = vf_set1(0.0f);
    for (int i = 0; i < 4; i++)
        if (i < n) v[i] = p[i];
    return v;
}
INLINE void vf_store_first(float *p, vf v, int n) {
    for (int i = 0; i < 4; i++)
        if (i < n) p[i] = v[i];
}
INLINE vf vf_keep_first(vf v, int n, float other) {
    for (int i = 0; i < 4; i++)
        if (i >= n) v[i] = other;
    return v;
}
INLINE vf vf_add(vf a, vf b) { return a + b; }
INLINE vf vf_sub(vf a, vf b) { return a - b; }
INLINE vf vf_mul(vf a, vf b) { return a * b; }
INLINE vf vf_div(vf a, vf b) { return a / b; }
INLINE vf vf_max(vf a, vf b) { vi c = a > b; return (vf)(((vi)a & c) | ((vi)b & ~c)); }
INLINE vf vf_min(vf a, vf b) { vi c = a < b; return (vf)(((vi)a & c) | ((vi)b & ~c)); }
INLINE vf vf_abs(vf a) { return (vf)((vi)a & vi_set1(0x7fffffff)); }
INLINE vf vf_fma(vf a, vf b, vf c) { return a * b + c; } /* two roundings where the CPU has no fused one */
INLINE float vf_sum(vf v) { return (v[0] + v[2]) + (v[1] + v[3]); }
INLINE float vf_largest(vf v) {
    float a = v[0] > v[1] ? v[0] : v[1], b = v[2] > v[3] ? v[2] : v[3];
    return a > b ? a : b;
}
INLINE vf vf_from_vi(vi v) { return __builtin_convertvector(v, vf); }
INLINE vi vf_bits(vf v) { return (vi)v; }
INLINE vf vf_of_bits(vi v) { return (vf)v; }
INLINE vi vi_from_vf(vf v) { /* to the nearest, ties to even, below 2^22 */
    return vi_sub((vi)(v + vf_set1(12582912.0f)), (vi)vf_set1(12582912.0f));
}
INLINE float plain_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13, bits;
    float scale = 5.192296858534828e33f, v; /* 2^112 moves the exponent's bias */
    if ((h & 0x7c00) == 0x7c00) {
        bits = sign | rest | 0x7f800000u;
        memcpy(&v, &bits, 4);
        return v;
    }
    memcpy(&v, &rest, 4);
    v *= scale;
    memcpy(&bits, &v, 4);
    bits |= sign;
    memcpy(&v, &bits, 4);
    return v;
}
INLINE uint16_t plain_to_f16(float f) { /* finite, at most 65504 */
    uint32_t bits, sign;
    memcpy(&bits, &f, 4);
    sign = (bits >> 16) & 0x8000;
    bits &= 0x7fffffff;
    if (bits < 0x38800000) { /* subnormal: adding 0.5 aligns the mantissa */
        float a;
        memcpy(&a, &bits, 4);
        a += 0.5f;
        memcpy(&bits, &a, 4);
        return (uint16_t)(sign | (bits - 0x3f000000));
    }
    bits += 0xfff + ((bits >> 13) & 1);
    return (uint16_t)(sign | ((bits - 0x38000000) >> 13));
}
INLINE vf vf_load_f16(const uint16_t *p) {
    return (vf){plain_from_f16(p[0]), plain_from_f16(p[1]), plain_from_f16(p[2]), plain_from_f16(p[3])};
}
INLINE void vf_store_f16(uint16_t *p, vf v) {
    for (int i = 0; i < 4; i++) p[i] = plain_to_f16(v[i]);
}
INLINE vf vf_load_bf16(const uint16_t *p) {
    return (vf)(vi){(int32_t)((uint32_t)p[0] << 16), (int32_t)((uint32_t)p[1] << 16), (int32_t)((uint32_t)p[2] << 16),
                    (int32_t)((uint32_t)p[3] << 16)};
}

INLINE vi dot_start(vi init, int bits) { (void)bits; return init; }
INLINE vi plain_quads(vi w, vi x) {
    plain_i16 p = __builtin_convertvector((plain_u8)w, plain_i16) * __builtin_convertvector((plain_i8)x, plain_i16);
    plain_i32 q = __builtin_convertvector(p, plain_i32);
    return __builtin_shufflevector(q, q, 0, 4, 8, 12) + __builtin_shufflevector(q, q, 1, 5, 9, 13) +
           __builtin_shufflevector(q, q, 2, 6, 10, 14) + __builtin_shufflevector(q, q, 3, 7, 11, 15);
}
INLINE vi dot_pair(vi s, vi w0, vi w1, vi x0, vi x1, int bits) {
    (void)bits;
    return s + plain_quads(w0, x0) + plain_quads(w1, x1);
}
INLINE vi dot_end(vi s, vi init, int bits) { (void)init; (void)bits; return s; }
INLINE void prefetch_stream(const void *p) { __builtin_prefetch(p); }
INLINE void cpu_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
