/* Computes:  what this CPU and its system can run: 2 for AVX-512 with VNNI, 1 for AVX2 with FMA and F16C, else 0.
 * Arguments: none.
 * Requires:  nothing; built for the oldest CPU of its kind.
 * Launch:    once, before a variant of the kernels is chosen.
 * Numerics:  none.
 * Oracle:    tests/kernels/cpu/test_compiler.py compares it with the system's own list where there is one.
 * Measured:  not timed.
 * Source:    Intel's manual, volume 2, CPUID; XGETBV tells whether the system saves the wide registers. */
#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif
#if defined(__x86_64__)
#include <cpuid.h>

EXPORT int cpu_level(void) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) return 0;
    int saves = c >> 27 & 1, fma = c >> 12 & 1, f16c = c >> 29 & 1;
    if (!saves) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    int avx2 = (b >> 5 & 1) && fma && f16c && (low & 6) == 6;
    int f_dq_bw_vl = (b >> 16 & 1) && (b >> 17 & 1) && (b >> 30 & 1) && (b >> 31 & 1);
    if (avx2 && f_dq_bw_vl && (c >> 11 & 1) && (low & 0xe6) == 0xe6) return 2;
    return avx2;
}
#else
EXPORT int cpu_level(void) { return 0; }
#endif
