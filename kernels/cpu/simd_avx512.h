/* The vector types and operations that every kernel is written against, on AVX-512 with VNNI: 16 lanes of 32 bits.
 *
 * Weights are bytes without a sign, activations signed bytes; a quad is the 4 neighbouring k of one row, in one lane.
 * simd_avx2.h (8 lanes) and simd_plain.h (4 lanes) offer the same names. */
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define DOT8_OFFSET 128 /* 8-bit weights lie in memory as q + 128, and dot_pair multiplies them so */
#define INLINE static inline __attribute__((always_inline))

typedef __m512i vi;
typedef __m512 vf;

INLINE vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
INLINE void vi_store(void *p, vi v) { _mm512_storeu_si512(p, v); }
INLINE vi vi_set1(int32_t v) { return _mm512_set1_epi32(v); }
INLINE vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
INLINE vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
INLINE vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
INLINE vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
INLINE vi vi_shr(vi v, int n) { return _mm512_srli_epi32(v, (unsigned)n); }
INLINE vi vi_shl(vi v, int n) { return _mm512_slli_epi32(v, (unsigned)n); }
INLINE int32_t vi_sum(vi v) { return _mm512_reduce_add_epi32(v); }
INLINE vi vi_load_i8(const int8_t *p) { return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)); }
INLINE void vi_store_i8(int8_t *p, vi v) { _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v)); }

INLINE vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
INLINE void vf_store(float *p, vf v) { _mm512_storeu_ps(p, v); }
INLINE __mmask16 first_lanes(int n) { return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1); }
INLINE vf vf_load_first(const float *p, int n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
INLINE void vf_store_first(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
INLINE vf vf_keep_first(vf v, int n, float other) {
    return _mm512_mask_blend_ps(first_lanes(n), _mm512_set1_ps(other), v);
}
INLINE vf vf_set1(float v) { return _mm512_set1_ps(v); }
INLINE vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
INLINE vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
INLINE vf vf_abs(vf a) { return _mm512_abs_ps(a); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
INLINE float vf_sum(vf v) { return _mm512_reduce_add_ps(v); }
INLINE float vf_largest(vf v) { return _mm512_reduce_max_ps(v); }
INLINE vf vf_from_vi(vi v) { return _mm512_cvtepi32_ps(v); }
INLINE vi vi_from_vf(vf v) { return _mm512_cvtps_epi32(v); } /* to the nearest, ties to even */
INLINE vi vf_bits(vf v) { return _mm512_castps_si512(v); }
INLINE vf vf_of_bits(vi v) { return _mm512_castsi512_ps(v); }
INLINE vf vf_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
INLINE void vf_store_f16(uint16_t *p, vf v) { _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, 0)); }
INLINE vf vf_load_bf16(const uint16_t *p) {
    return vf_of_bits(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

/* Sums over quads: start, then pairs of quads, then end. `init` is what the sum starts from; `bits` is 4, 6 or 8. */
INLINE vi dot_start(vi init, int bits) { (void)bits; return init; }
INLINE vi dot_pair(vi s, vi w0, vi w1, vi x0, vi x1, int bits) {
    (void)bits;
    return _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(s, w0, x0), w1, x1);
}
INLINE vi dot_end(vi s, vi init, int bits) { (void)init; (void)bits; return s; }
INLINE void prefetch_stream(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
INLINE void cpu_relax(void) { _mm_pause(); }
