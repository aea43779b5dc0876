// What every kernel here shares: fixed-width types, float16, tensor-core and copy instructions of sm_75 and newer.
//
// No toolkit header is included: NVRTC's own package holds none, so float16 is an unsigned short and its conversions
// are single PTX instructions.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define WARP 32
#define PAGE_SIZE 64
#define INFINITY_F __int_as_float(0x7f800000)

// Programmatic dependent launch (sm_90): a kernel may start while the one before it still runs. Every thread of every
// kernel calls wait_for_previous() before it touches anything that another kernel writes or reads, and early exits
// come after it: a kernel that ends has then waited for all before it. Weights never change and may be read earlier.
__device__ __forceinline__ void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ float half_to_float(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
__device__ __forceinline__ u16 float_to_half(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
// The first argument goes into the low half.
__device__ __forceinline__ u32 pack_halves(float low, float high) {
  return (u32)float_to_half(low) | (u32)float_to_half(high) << 16;
}

// Read once: does not stay in L1, and leaves L2 early.
__device__ __forceinline__ uint4 load_streamed(const uint4* p) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p));
  return v;
}

// Within one unit in the last place, and short: the exact division is a page of code.
__device__ __forceinline__ float reciprocal(float v) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
  return r;
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int step = 16; step; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
  return v;
}
__device__ __forceinline__ float warp_max(float v) {
#pragma unroll
  for (int step = 16; step; step >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, step));
  return v;
}

// c (16 x 8, i32) += a (16 x 32, i8) b (32 x 8, i8). With g = lane / 4, t = lane % 4:
//   a[0] row g, columns 4t..4t+3; a[1] row g + 8, the same; a[2] row g, columns 16 + 4t..; a[3] row g + 8, those
//   b[0] column g, rows 4t..4t+3; b[1] column g, rows 16 + 4t..
//   c[0], c[1] row g, columns 2t, 2t + 1; c[2], c[3] row g + 8
__device__ __forceinline__ void mma_i8(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
#define MMA_I8_QUARTER(first, second, a_register, b_register)                                     \
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"             \
      : "+r"(c[first]), "+r"(c[second])                                                          \
      : "r"(a[a_register]), "r"(b_register))
  MMA_I8_QUARTER(0, 1, 0, b0);
  MMA_I8_QUARTER(0, 1, 2, b1);
  MMA_I8_QUARTER(2, 3, 1, b0);
  MMA_I8_QUARTER(2, 3, 3, b1);
#undef MMA_I8_QUARTER
#endif
}

// c (16 x 8, f32) += a (16 x 16, f16) b (16 x 8, f16); two halves a register, the lower index in the low half:
//   a[0] row g, columns 2t, 2t + 1; a[1] row g + 8, the same; a[2] row g, columns 2t + 8, 2t + 9; a[3] row g + 8, those
//   b[0] column g, rows 2t, 2t + 1; b[1] column g, rows 2t + 8, 2t + 9
//   c as above
__device__ __forceinline__ void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

// Shared memory by 32-bit addresses: a pointer would be computed anew, in 64 bits, wherever registers are short.
__device__ __forceinline__ uint4 read_shared_16(u32 at) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(at)
               : "memory");
  return v;
}
__device__ __forceinline__ uint2 read_shared_8(u32 at) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ float read_shared_float(u32 at) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ u32 read_shared_u16(u32 at) {
  u32 v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}
__device__ __forceinline__ void write_shared(u32 at, u32 v) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(v) : "memory");
}
__device__ __forceinline__ void write_shared(u32 at, float v) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(at), "f"(v) : "memory");
}

// 16 bytes from global to shared memory without a register in between; on sm_75 an ordinary copy.
__device__ __forceinline__ void copy_16_async(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared_address(shared)), "l"(global) : "memory");
#else
  *(uint4*)shared = *(const uint4*)global;
#endif
}
__device__ __forceinline__ void end_copy_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}
