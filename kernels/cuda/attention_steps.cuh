// How a warp's tokens of the cache come to the tensor cores, 32 a step: for attention_decode.cu. Three ways:
//
//   COPIED  sm_90 and newer: bulk copies bring pages to shared memory, a step waits in registers
//   STAGED  the next step's loads into registers are under way while one is worked on
//   else    large heads: there are not registers enough, each piece is loaded where it is needed
#pragma once
#include "attention_splits.cuh"

#define STAGED (HEAD_DIM <= 128)
#define COPIED (STAGED && __CUDA_ARCH__ >= 900)

struct Staged {
  KeyPair keys[2];
  ValueTile values[DIM_TILES];
};

// The steps of a warp. Between `open` and `first` other work hides the latency; then, for each step while `base < end`,
// the pieces by `key` and `value`, and when all keys, then all values have been used, `next_keys` and `next_values`.
struct WarpSteps {
  const int* pages;
  int base, end;  // first token of the step; behind the last of the split
};

#if COPIED
// A page of keys and values on its way to shared memory for two warps, each of which takes half of its tokens. Unlike
// loads into registers, copies do not stand in the way of what the previous kernel reads on the same SM.
struct PageCopy {
  static constexpr int BYTES = PAGE_SIZE * HEAD_DIM * 2;  // of the keys, and of the values

  u32 barrier, phase;
  u16* keys;    // in shared memory
  bool copies;  // the one lane that starts them

  // For all threads of the block.
  __device__ __forceinline__ void open(u64* barriers, u8* memory, const Place& p) {
    const int pair = p.warp / 2;
    barrier = shared_address(barriers + pair), phase = 0;
    keys = (u16*)(memory + pair * 2 * BYTES);
    copies = p.warp % 2 == 0 && p.lane == 0;
    if (threadIdx.x == 0) {
#pragma unroll
      for (int i = 0; i < WARPS / 2; i++)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(barriers + i)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
  // They follow the keys.
  __device__ __forceinline__ const u16* values() const { return keys + PAGE_SIZE * HEAD_DIM; }
  __device__ __forceinline__ void start(const AttentionDecodeArguments& a, int page, const Place& p) const {
    if (!copies) return;
    const i64 offset = page_offset(page, p.kv_head, a.kv_heads);
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(barrier), "r"(2 * BYTES) : "memory");
    copy(shared_address(keys), a.keys + offset);
    copy(shared_address(keys) + BYTES, a.values + offset);
  }
  // Asks the L2 cache for the page after the first.
  __device__ __forceinline__ void prefetch(const AttentionDecodeArguments& a, int page, const Place& p) const {
    if (!copies) return;
    const i64 offset = page_offset(page, p.kv_head, a.kv_heads);
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a.keys + offset), "r"(BYTES) : "memory");
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(a.values + offset), "r"(BYTES) : "memory");
  }
  __device__ __forceinline__ void wait() {
    u32 done = 0;
    while (!done)
      asm volatile(
          "{\n .reg .pred done;\n mbarrier.try_wait.parity.shared.b64 done, [%1], %2;\n selp.u32 %0, 1, 0, done;\n}"
          : "=r"(done)
          : "r"(barrier), "r"(phase)
          : "memory");
    phase ^= 1;
  }
  // Both warps have read the page.
  __device__ __forceinline__ void release(const Place& p) const {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + p.warp / 2), "r"(2 * WARP) : "memory");
  }

 private:
  __device__ __forceinline__ void copy(u32 to, const u16* from) const {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(BYTES), "r"(barrier)
                 : "memory");
  }
};

struct Steps : WarpSteps {
  PageCopy copy;
  int page;  // to be waited for next; the same for two warps

  __device__ __forceinline__ void open(const AttentionDecodeArguments& a, Staged&, int guess, int guessed,
                                       const Place& p) {
    extern __shared__ __align__(128) u8 copied[];
    __shared__ __align__(8) u64 barriers[WARPS / 2];
    copy.open(barriers, copied, p);
    page = base / PAGE_SIZE;
    if (has_page()) copy.start(a, page == guess ? guessed : pages[page], p);
    if (page * PAGE_SIZE + TURN < end) copy.prefetch(a, pages[page + TURN / PAGE_SIZE], p);
  }
  __device__ __forceinline__ void first(const AttentionDecodeArguments& a, Staged& staged, const Place& p) {
    if (base >= end) return;
    read_keys(staged, p);
    read_values(a, staged, p);
  }
  __device__ __forceinline__ void key(const AttentionDecodeArguments&, Staged&, int, const Place&) const {}
  __device__ __forceinline__ void value(const AttentionDecodeArguments&, Staged&, int, const Place&) const {}
  __device__ __forceinline__ void next_keys(const AttentionDecodeArguments&, Staged& staged, const Place& p) {
    if (has_page()) read_keys(staged, p);
  }
  __device__ __forceinline__ void next_values(const AttentionDecodeArguments& a, Staged& staged, const Place& p) {
    if (has_page()) read_values(a, staged, p);
    base += TURN;
  }

 private:
  __device__ __forceinline__ bool has_page() const { return page * PAGE_SIZE < end; }
  __device__ __forceinline__ void read_keys(Staged& staged, const Place& p) {
    copy.wait();
#pragma unroll
    for (int i = 0; i < 2; i++)
      staged.keys[i].read(copy.keys + base % PAGE_SIZE * HEAD_DIM, HEAD_DIM, i, p.lane);
  }
  // And starts the copy of the page after this one.
  __device__ __forceinline__ void read_values(const AttentionDecodeArguments& a, Staged& staged, const Place& p) {
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++)
      staged.values[i].read(copy.values() + base % PAGE_SIZE, PAGE_SIZE, i, p.lane);
    page += TURN / PAGE_SIZE;
    if (!has_page()) return;
    copy.release(p);
    copy.start(a, pages[page], p);
  }
};
#else
struct Steps : WarpSteps {
  __device__ __forceinline__ void open(const AttentionDecodeArguments& a, Staged& staged, int, int, const Place& p) {
    if (!STAGED || base >= end) return;
    load_keys(a, staged, base, p);
    load_values(a, staged, base, p);
  }
  __device__ __forceinline__ void first(const AttentionDecodeArguments&, Staged&, const Place&) const {}
  __device__ __forceinline__ void key(const AttentionDecodeArguments& a, Staged& staged, int i, const Place& p) const {
    if (!STAGED) staged.keys[i].load(a.keys + offset(a, base, p), base % PAGE_SIZE, i, p.lane);
  }
  __device__ __forceinline__ void value(const AttentionDecodeArguments& a, Staged& staged, int i,
                                        const Place& p) const {
    if (!STAGED) staged.values[i].load(a.values + offset(a, base, p), base % PAGE_SIZE, i, p.lane);
  }
  __device__ __forceinline__ void next_keys(const AttentionDecodeArguments& a, Staged& staged, const Place& p) const {
    if (STAGED && base + TURN < end) load_keys(a, staged, base + TURN, p);
  }
  __device__ __forceinline__ void next_values(const AttentionDecodeArguments& a, Staged& staged, const Place& p) {
    base += TURN;
    if (STAGED && base < end) load_values(a, staged, base, p);
  }

 private:
  __device__ __forceinline__ i64 offset(const AttentionDecodeArguments& a, int token, const Place& p) const {
    return page_offset(pages[token / PAGE_SIZE], p.kv_head, a.kv_heads);
  }
  __device__ __forceinline__ void load_keys(const AttentionDecodeArguments& a, Staged& staged, int token,
                                            const Place& p) const {
    const u16* page = a.keys + offset(a, token, p);
#pragma unroll
    for (int i = 0; i < 2; i++) staged.keys[i].load(page, token % PAGE_SIZE, i, p.lane);
  }
  __device__ __forceinline__ void load_values(const AttentionDecodeArguments& a, Staged& staged, int token,
                                              const Place& p) const {
    const u16* page = a.values + offset(a, token, p);
#pragma unroll
    for (int i = 0; i < DIM_TILES; i++) staged.values[i].load(page, token % PAGE_SIZE, i, p.lane);
  }
};
#endif
