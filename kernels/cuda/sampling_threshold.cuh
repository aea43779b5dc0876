// The rows that sampling.cu works on, and the search for the thresholds of top-k and top-p: histograms of the scores,
// each over what lies in one bin of the one before.
#pragma once
#include "sampling.cuh"

#define BINS 2048
#define BINS_OF_A_THREAD (BINS / THREADS)
#define MAX_BLOCKS 256
#define LARGEST_VOCABULARY 1048576
// A histogram is cleared two rounds after it was filled, when all have read it.
#define HISTOGRAMS 3
// Bins of the first histogram for each unit of logit, or of logit over temperature.
#define FIRST_BINS 64.0f
// exp of less is lost in a sum that holds exp(0).
#define LOWEST_SCORE (-64.0)

struct SamplingRow {
  double temperature, top_p, min_p;
  u64 seed, index;
  float penalty;
  int top_k, live, spare;
};

struct Histogram {
  u64 sums[BINS];
  u32 least[BINS], most[BINS];
};

struct RowWorkspace {
  u64 best;
  u32 arrivals, leavers;
  u32 steps;  // that this row has been through
  u32 spare[11];
  double totals[MAX_BLOCKS], kept[MAX_BLOCKS];
  u32 equal[MAX_BLOCKS];
  Histogram histograms[HISTOGRAMS];
};

struct SampleArguments {
  const float* logits;
  SamplingRow* rows;
  u32* seen;
  RowWorkspace* workspace;
  int* token_ids;
  int* positions;
  int* context_lengths;
  u64* ring;
  double unit;
  int vocab_size, seen_words, first_row, ring_slots, ring_rows;
};

// What ends a row, read while its logits are.
struct Ending {
  int row, position, context_length;
  u32 step;
};

struct Shared {
  SamplingRow params;
  Ending ending;
  u32 low[BINS], high[BINS], least[BINS], most[BINS];
  u64 room[WARPS];
  double sums[WARPS];
  u32 counts[WARPS];
  double before[MAX_BLOCKS];
  double uniform, limit;
  u64 reached;
  u32 key_low, key_high;
  int found, last, equal_kept;
  bool has_threshold, all_reached;
};

// A row as its blocks see it; a field keeps its name from the oracle where it has one there.
struct Scores {
  const float* logits;
  const u32* seen;
  float penalty, best, reach;
  double per_temperature, base, top_score;

  __device__ __forceinline__ float value(int i) const { return penalize(logits[i], i); }
  __device__ __forceinline__ float penalize(float v, int i) const {
    if (penalty != 1.0f && seen[i / 32] >> i % 32 & 1) v = v > 0.0f ? __fdiv_rn(v, penalty) : __fmul_rn(v, penalty);
    return v + 0.0f;  // minus zero equals zero
  }
  // A product where the oracle divides: small GPUs have few units for float64, and it is off by one rounding at most.
  __device__ __forceinline__ double score(float v) const {
    return __dsub_rn(__dmul_rn((double)v, per_temperature), base);
  }
  // 0 where top-k drops it or nothing is left of it. Scores are equal only where distances in float32 are, too.
  __device__ __forceinline__ double weight(float v) const {
    const float distance = best - v;
    if (distance > reach) return 0.0;
    const double s = score(v);
    return distance == reach && s < top_score ? 0.0 : exp(s);
  }
};

struct Team {
  RowWorkspace* workspace;
  u32 waits;
  __device__ __forceinline__ void wait() { wait_for_blocks(&workspace->arrivals, ++waits * gridDim.x); }
  __device__ __forceinline__ void clear(int which) const {
    Histogram& h = workspace->histograms[which];
    for (int b = blockIdx.x * THREADS + threadIdx.x; b < BINS; b += gridDim.x * THREADS) {
      h.sums[b] = 0;
      h.least[b] = 0xffffffffu;
      h.most[b] = 0;
    }
  }
};

__device__ __forceinline__ void clear_shared(Shared& s) {
  for (int b = threadIdx.x; b < BINS; b += THREADS) {
    s.low[b] = s.high[b] = s.most[b] = 0;
    s.least[b] = 0xffffffffu;
  }
  __syncthreads();
}

__device__ __forceinline__ void count(Shared& s, int bin, u32 key, u64 amount) {
  const u32 low = (u32)amount, old = atomicAdd(&s.low[bin], low);
  const u32 high = (u32)(amount >> 32) + (old + low < old);
  if (high) atomicAdd(&s.high[bin], high);
  atomicMin(&s.least[bin], key);
  atomicMax(&s.most[bin], key);
}

__device__ __forceinline__ void merge(const Shared& s, Histogram& h) {
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += THREADS) {
    if (s.least[b] > s.most[b]) continue;
    atomicAdd(&h.sums[b], (u64)s.high[b] << 32 | s.low[b]);
    atomicMin(&h.least[b], s.least[b]);
    atomicMax(&h.most[b], s.most[b]);
  }
}

// Finds the first bin at which the sums reach `limit`, `before` having come ahead of the first one.
__device__ __forceinline__ void find_bin(Shared& s, const Histogram& h, u64 before, u64 limit) {
  if (threadIdx.x == 0) s.has_threshold = false;
  u64 sums[BINS_OF_A_THREAD], own = 0, total;
  const int first = threadIdx.x * BINS_OF_A_THREAD;
#pragma unroll
  for (int b = 0; b < BINS_OF_A_THREAD; b++) own += sums[b] = __ldcg(&h.sums[first + b]);
  u64 reached = before + block_scan(own, s.room, total) - own;  // its barriers order the store above and those below
#pragma unroll
  for (int b = 0; b < BINS_OF_A_THREAD; b++) {
    if (reached < limit && reached + sums[b] >= limit) {
      s.reached = reached;
      s.key_low = __ldcg(&h.least[first + b]);
      s.key_high = __ldcg(&h.most[first + b]);
      s.all_reached = reached + sums[b] == limit;
      s.has_threshold = true;
    }
    reached += sums[b];
  }
  __syncthreads();
}

// The key of the element at which the elements, from the largest down, reach the limit: counts reach top_k, or weights
// the share top_p of all. 0 where none does.
template <bool weights>
__device__ u32 find_threshold(Team& team, Shared& s, const Scores& scores, const SampleArguments& a, int begin,
                              int end) {
  const float scale = weights ? FIRST_BINS * (float)scores.per_temperature : FIRST_BINS;
  u32 low = 0, high = 0xffffffffu;
  int shift = 0;
  u64 before = 0, goal = s.params.top_k;
  for (int pass = 0;; pass++) {
    Histogram& h = team.workspace->histograms[team.waits % HISTOGRAMS];
    team.clear((team.waits + 1) % HISTOGRAMS);
    clear_shared(s);
    double sum = 0.0;
    for (int i = begin + threadIdx.x; i < end; i += THREADS) {
      const float v = scores.value(i);
      const u32 key = key_of(v);
      if (key < low || key > high) continue;
      u64 amount = 1;
      if (weights) {
        const double w = scores.weight(v);
        if (w == 0.0) continue;
        sum += w;
        amount = __double2ull_rn(w * a.unit);
      }
      const int bin = pass ? (int)(high - key >> shift) : (int)fminf((scores.best - v) * scale, BINS - 1.0f);
      count(s, bin, key, amount);
    }
    merge(s, h);
    if (weights && pass == 0) {
      sum = block_sum(sum, s.sums);
      if (threadIdx.x == 0) team.workspace->totals[blockIdx.x] = sum;
    }
    team.wait();
    if (weights && pass == 0) {
      double total;
      block_scan(threadIdx.x < gridDim.x ? __ldcg(&team.workspace->totals[threadIdx.x]) : 0.0, s.sums, total);
      const double limit = s.params.top_p * total;
      if (threadIdx.x == 0) s.limit = limit;
      goal = __double2ull_ru(limit * a.unit);
    }
    find_bin(s, h, before, goal);
    if (!s.has_threshold) return 0;
    before = s.reached;
    low = s.key_low;
    high = s.key_high;
    // Of a whole bin that is wanted the lowest is the threshold, whatever lies between.
    const bool done = low == high || (!weights && s.all_reached);
    __syncthreads();
    if (done) return low;
    shift = 0;
    while (high - low >> shift >= BINS) shift++;
  }
}
