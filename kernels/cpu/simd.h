/* One set of vector operations, chosen by the instruction set that the compiler is told to use. */
#pragma once
#if defined(KERNELS_AVX512)
#include "simd_avx512.h"
#elif defined(KERNELS_AVX2)
#include "simd_avx2.h"
#else
#include "simd_plain.h"
#endif

#define TILE 16               /* rows of a weight tile */
#define PARTS (TILE / LANES)  /* vectors that hold one value of each row of a tile */

INLINE vi vi_repeat(const void *p) { int32_t v; memcpy(&v, p, 4); return vi_set1(v); }
INLINE vf vf_repeat(const float *p) { return vf_set1(*p); }

/* e^x for x <= 88, 0 below -87; relative error under 2^-22. */
INLINE vf vf_exp(vf x) {
    const vf magic = vf_set1(12582912.0f);
    vf clamped = vf_max(vf_min(x, vf_set1(88.0f)), vf_set1(-87.0f));
    vf shifted = vf_fma(clamped, vf_set1(1.44269504f), magic);
    vf n = vf_sub(shifted, magic);
    vf r = vf_fma(n, vf_set1(-0.693359375f), clamped);
    r = vf_fma(n, vf_set1(2.12194440e-4f), r);
    vf p = vf_set1(1.9875691500e-4f);
    p = vf_fma(p, r, vf_set1(1.3981999507e-3f));
    p = vf_fma(p, r, vf_set1(8.3334519073e-3f));
    p = vf_fma(p, r, vf_set1(4.1665795894e-2f));
    p = vf_fma(p, r, vf_set1(1.6666665459e-1f));
    p = vf_fma(p, r, vf_set1(5.0000001201e-1f));
    p = vf_fma(p, vf_mul(r, r), vf_add(r, vf_set1(1.0f)));
    vi exponent = vi_shl(vi_sub(vf_bits(shifted), vf_bits(magic)), 23);
    return vf_of_bits(vi_add(vf_bits(p), exponent));
}
INLINE float exp_one(float x) {
    float lanes[LANES];
    vf_store(lanes, vf_exp(vf_set1(x)));
    return lanes[0];
}
