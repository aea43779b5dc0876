/* The vector types and operations of simd_avx512.h on AVX2, FMA and F16C: 8 lanes of 32 bits. */
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define LANES 8
#define DOT8_OFFSET 0 /* dot_pair gives 8-bit weights their sign back: nothing to subtract */
#define INLINE static inline __attribute__((always_inline))

typedef __m256i vi;
typedef __m256 vf;

INLINE vi vi_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE void vi_store(void *p, vi v) { _mm256_storeu_si256((__m256i *)p, v); }
INLINE vi vi_set1(int32_t v) { return _mm256_set1_epi32(v); }
INLINE vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
INLINE vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
INLINE vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
INLINE vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
INLINE vi vi_shr(vi v, int n) { return _mm256_srli_epi32(v, n); }
INLINE vi vi_shl(vi v, int n) { return _mm256_slli_epi32(v, n); }
INLINE int32_t vi_sum(vi v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}
INLINE vi vi_load_i8(const int8_t *p) { return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)); }
INLINE void vi_store_i8(int8_t *p, vi v) {
    __m128i s = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    _mm_storel_epi64((__m128i *)p, _mm_packs_epi16(s, s));
}

INLINE vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void vf_store(float *p, vf v) { _mm256_storeu_ps(p, v); }
INLINE __m256i first_lanes(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf vf_load_first(const float *p, int n) { return _mm256_maskload_ps(p, first_lanes(n)); }
INLINE void vf_store_first(float *p, vf v, int n) { _mm256_maskstore_ps(p, first_lanes(n), v); }
INLINE vf vf_keep_first(vf v, int n, float other) {
    return _mm256_blendv_ps(_mm256_set1_ps(other), v, _mm256_castsi256_ps(first_lanes(n)));
}
INLINE vf vf_set1(float v) { return _mm256_set1_ps(v); }
INLINE vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
INLINE vf vf_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
INLINE vf vf_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
INLINE vf vf_div(vf a, vf b) { return _mm256_div_ps(a, b); }
INLINE vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
INLINE vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
INLINE vf vf_abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
INLINE vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
INLINE float vf_sum(vf v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
INLINE float vf_largest(vf v) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}
INLINE vf vf_from_vi(vi v) { return _mm256_cvtepi32_ps(v); }
INLINE vi vi_from_vf(vf v) { return _mm256_cvtps_epi32(v); }
INLINE vi vf_bits(vf v) { return _mm256_castps_si256(v); }
INLINE vf vf_of_bits(vi v) { return _mm256_castsi256_ps(v); }
INLINE vf vf_load_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
INLINE void vf_store_f16(uint16_t *p, vf v) { _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, 0)); }
INLINE vf vf_load_bf16(const uint16_t *p) {
    return vf_of_bits(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

/* 4-bit weights: 8 quads of 2 * 15 * 127 stay below 2^15, so the sum is kept in 16 bits until the end. 5- and 6-bit
 * ones leave room for two quads. 8-bit ones would saturate without a sign: |w| times x with w's sign does not. */
INLINE vi dot_start(vi init, int bits) { return bits == 4 ? _mm256_setzero_si256() : init; }
INLINE vi dot_signed(vi w, vi x) {
    vi s = _mm256_xor_si256(w, _mm256_set1_epi8((char)0x80));
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(s), _mm256_sign_epi8(x, s)), _mm256_set1_epi16(1));
}
INLINE vi dot_pair(vi s, vi w0, vi w1, vi x0, vi x1, int bits) {
    if (bits == 8) return vi_add(s, vi_add(dot_signed(w0, x0), dot_signed(w1, x1)));
    vi t = _mm256_add_epi16(_mm256_maddubs_epi16(w0, x0), _mm256_maddubs_epi16(w1, x1));
    return bits == 4 ? _mm256_add_epi16(s, t) : vi_add(s, _mm256_madd_epi16(t, _mm256_set1_epi16(1)));
}
INLINE vi dot_end(vi s, vi init, int bits) {
    return bits == 4 ? vi_add(init, _mm256_madd_epi16(s, _mm256_set1_epi16(1))) : s;
}
INLINE void prefetch_stream(const void *p) { _mm_prefetch((const char *)p, _MM_HINT_T0); }
INLINE void cpu_relax(void) { _mm_pause(); }
