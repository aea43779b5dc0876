// Computes: the next token of each row of logits: repetition penalty, temperature, top-k, top-p, min-p, a draw; then the
//   row's token id, position and context length for the next step, and the id for the host
// Arguments: sample: logits, rows, seen, workspace, steps, token_ids, positions, context_lengths, ring, unit, vocab_size,
//   seen_words, first_row, ring_slots, ring_rows; uniform_numbers: seeds, indices, numbers, count
// Requires: 1 <= vocab_size <= LARGEST_VOCABULARY; seen_words * 32 >= vocab_size; first_row >= 0; ring_slots >= 1; ring_rows >= 1;
//   unit * vocab_size <= 9223372036854775808; logits % 4 == 0; rows % 16 == 0; workspace % 16 == 0; ring % 8 == 0;
//   count >= 1
// Launch: grid (blocks of a row, rows) no larger than what runs at once, block 512; each block takes one stretch of the
//   vocabulary. A greedy row is ended by its last block; the blocks of a sampled one wait for each other 2 to 10 times
// Numerics: as the oracle: the penalty in float32, all else in float64; sums in an order fixed by the grid. Thresholds of
//   top-p are found with sums of integers (2^-45), which have no order
// Oracle: inference/engine/sampler.py choose: the same token unless the random number lies within rounding of a border
// Measured: docs/measured.md
// Source: thresholds by histograms of the scores, each narrowing the one before; Philox4x64-10 (Salmon et al. 2011)
#include "sampling.cuh"

#define BINS 2048
#define BINS_OF_A_THREAD (BINS / THREADS)
#define MAX_BLOCKS 256
#define LARGEST_VOCABULARY 1048576
// A histogram is cleared two rounds after it was filled, when all have read it.
#define HISTOGRAMS 3
// Bins of the first histogram for each unit of logit, or of logit over temperature.
#define FIRST_BINS 64.0f
// exp is 0 below this.
#define LOWEST_SCORE 750.0

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
  u64 spare[6];
  double totals[MAX_BLOCKS], kept[MAX_BLOCKS];
  u32 equal[MAX_BLOCKS];
  Histogram histograms[HISTOGRAMS];
};

struct Steps {
  u32 step, ended;
};

struct SampleArguments {
  const float* logits;
  SamplingRow* rows;
  u32* seen;
  RowWorkspace* workspace;
  Steps* steps;
  int* token_ids;
  int* positions;
  int* context_lengths;
  u64* ring;
  double unit;
  int vocab_size, seen_words, first_row, ring_slots, ring_rows;
};

struct Shared {
  u32 low[BINS], high[BINS], least[BINS], most[BINS];
  u64 room[WARPS];
  double sums[WARPS];
  u32 counts[WARPS];
  double before[MAX_BLOCKS];
  double uniform;
  u64 reached;
  u32 key_low, key_high;
  int found, last, equal_kept;
  bool has_threshold, all_reached;
};

// A row as its blocks see it.
struct Scores {
  const float* logits;
  const u32* seen;
  float penalty, best, reach, top_distance;
  bool penalized;
  u32 top_key;
  double temperature, base, top_score;

  __device__ __forceinline__ float value(int i) const {
    float v = logits[i];
    if (penalized && seen[i / 32] >> i % 32 & 1) v = v > 0.0f ? __fdiv_rn(v, penalty) : __fmul_rn(v, penalty);
    return v + 0.0f;
  }
  __device__ __forceinline__ double score(float v) const { return __dsub_rn(__ddiv_rn((double)v, temperature), base); }
  // 0 where top-k drops it or nothing is left of it. Scores are equal only where distances in float32 are, too.
  __device__ __forceinline__ double weight(float v) const {
    const float distance = best - v;
    if (distance > reach || distance > top_distance) return 0.0;
    const double s = score(v);
    return distance == top_distance && s < top_score ? 0.0 : exp(s);
  }
};

struct Team {
  RowWorkspace* workspace;
  u32 target;
  int round;
  __device__ __forceinline__ void wait() {
    target += gridDim.x;
    wait_for_blocks(&workspace->arrivals, target);
  }
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
__device__ u32 find_threshold(Team& team, Shared& s, const Scores& scores, const SampleArguments& a, int begin, int end,
                              int top_k, double top_p, double& limit) {
  const float scale = weights ? FIRST_BINS / (float)scores.temperature : FIRST_BINS;
  u32 low = 0, high = 0xffffffffu;
  int shift = 0;
  u64 before = 0, goal = top_k;
  for (int pass = 0;; pass++) {
    Histogram& h = team.workspace->histograms[team.round % HISTOGRAMS];
    team.clear((team.round + 1) % HISTOGRAMS);
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
    team.round++;
    if (weights && pass == 0) {
      double total;
      block_scan(threadIdx.x < gridDim.x ? __ldcg(&team.workspace->totals[threadIdx.x]) : 0.0, s.sums, total);
      limit = top_p * total;
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

__device__ __forceinline__ void end_row(const SampleArguments& a) {
  __threadfence();
  if (atomicAdd(&a.steps->ended, 1) == gridDim.y - 1) {
    a.steps->ended = 0;
    a.steps->step++;
  }
}

// Id and the number of the step in one word: the host needs no other sign that it is there.
__device__ __forceinline__ void tell_host(const SampleArguments& a, int row, int token) {
  const u32 step = a.steps->step;
  volatile u64* slot = a.ring + (u64)(step % a.ring_slots) * a.ring_rows + row;
  *slot = (u64)(step + 1) << 32 | (u32)token;
}

__device__ __forceinline__ void write_token(const SampleArguments& a, int row, int token) {
  tell_host(a, row, token);
  if (token < 0) return;
  a.token_ids[row] = token;
  a.positions[row]++;
  a.context_lengths[row]++;
  a.rows[row].index++;
  if (a.rows[row].penalty != 1.0f) a.seen[(u64)row * a.seen_words + token / 32] |= 1u << token % 32;
}

// The token of the highest logit, or why there is none.
__device__ __forceinline__ int token_of(u64 best) {
  const u32 key = (u32)(best >> 32);
  if (key == 0xffffffffu) return LOGIT_IS_NAN;
  if (key == key_of(INFINITY_F)) return LOGIT_IS_INFINITE;
  if (key == key_of(-INFINITY_F)) return ALL_MINUS_INFINITE;
  return (int)~(u32)best;
}

// What top-p and min-p leave of the weights.
struct Kept {
  bool nucleus;
  double border, min_p, limit;
  float reach, border_bin, scale;

  // 0 where it is dropped; those on the border are judged by their order later.
  __device__ __forceinline__ double weight(const Scores& scores, int i) const {
    const float v = scores.value(i), distance = scores.best - v;
    if (distance > reach) return 0.0;
    // Weights of different bins differ, so none below the border's bin can be as heavy as the border.
    if (nucleus && fminf(distance * scale, BINS - 1.0f) >= border_bin + 1.0f) return 0.0;
    const double w = scores.weight(v);
    return w < (nucleus ? border : min_p) ? 0.0 : w;
  }
};

__device__ __forceinline__ Kept kept_of(const SamplingRow& p, const Scores& scores, u32 border_key, double limit) {
  Kept kept = {};
  kept.min_p = p.min_p;
  kept.limit = limit;
  kept.reach = scores.reach;
  if (p.min_p > 0.0) {
    kept.reach = fminf(kept.reach, (float)(p.temperature * (0.001 - 1.001 * log(p.min_p))));
  }
  if (border_key) {
    const float v = value_of(border_key);
    kept.border = scores.weight(v);
    kept.nucleus = kept.border >= p.min_p;  // else min-p rules all on the border out
    kept.scale = FIRST_BINS / (float)p.temperature;
    kept.border_bin = truncf(fminf((scores.best - v) * kept.scale, BINS - 1.0f));
  }
  return kept;
}

// How many of the elements on the border top-p keeps: those that have less than the limit before them.
__device__ __forceinline__ double kept_on_border(const Kept& kept, double heavier) {
  double n = fmin(fmax(0.0, ceil((kept.limit - heavier) / kept.border)), LARGEST_VOCABULARY);
  // The quotient may be rounded over a whole number.
  if (n > 0.0 && __dadd_rn(heavier, __dmul_rn(n - 1.0, kept.border)) >= kept.limit) n -= 1.0;
  if (__dadd_rn(heavier, __dmul_rn(n, kept.border)) < kept.limit) n += 1.0;
  return heavier > 0.0 ? n : fmax(n, 1.0);
}

// Which block holds the number that was drawn; s.found, and for it s.before and s.equal_kept.
__device__ __forceinline__ double find_block(const Team& team, Shared& s, const Kept& kept) {
  const bool inside = threadIdx.x < gridDim.x;
  double weight = inside ? __ldcg(&team.workspace->kept[threadIdx.x]) : 0.0;
  int equal_kept = 0;
  if (kept.nucleus) {
    const u32 equal = inside ? __ldcg(&team.workspace->equal[threadIdx.x]) : 0;
    double heavier;
    u32 all;
    block_scan(weight, s.sums, heavier);
    const u32 equal_before = block_scan(equal, s.counts, all) - equal;
    const double left = kept_on_border(kept, heavier) - (double)equal_before;
    equal_kept = (int)fmin(fmax(left, 0.0), (double)equal);
    weight = __dadd_rn(weight, __dmul_rn((double)equal_kept, kept.border));
  }
  if (threadIdx.x == 0) {
    s.found = MAX_BLOCKS;
    s.last = 0;
  }
  double total;
  const double upto = block_scan(weight, s.sums, total);
  const double drawn = s.uniform * total;
  if (inside) s.before[threadIdx.x] = upto;
  if (threadIdx.x == blockIdx.x) s.equal_kept = equal_kept;
  if (weight > 0.0) {
    if (upto > drawn) atomicMin(&s.found, (int)threadIdx.x);
    atomicMax(&s.last, (int)threadIdx.x);
  }
  __syncthreads();
  return drawn;
}

// The token of this block's stretch at which the sum of all before it and its own passes `drawn`.
__device__ __forceinline__ int find_token(Shared& s, const Scores& scores, const Kept& kept, int begin, int end,
                                          double drawn) {
  double before = blockIdx.x ? s.before[blockIdx.x - 1] : 0.0;
  int equal_left = s.equal_kept;
  __syncthreads();
  if (threadIdx.x == 0) {
    s.found = end;
    s.last = begin;
  }
  for (int start = begin; start < end; start += THREADS) {
    const int i = start + threadIdx.x;
    double w = i < end ? kept.weight(scores, i) : 0.0;
    if (kept.nucleus) {
      const bool equal = w == kept.border;
      if (__syncthreads_or(equal)) {
        int all;
        const int rank = block_scan((int)equal, (int*)s.counts, all);
        if (equal && rank > equal_left) w = 0.0;
        equal_left -= all;
      }
    }
    if (!__syncthreads_or(w > 0.0)) continue;
    double total;
    const double upto = before + block_scan(w, s.sums, total);
    if (w > 0.0) {
      if (upto > drawn) atomicMin(&s.found, i);
      atomicMax(&s.last, i);
    }
    __syncthreads();
    if (s.found < end) break;
    before += total;
  }
  __syncthreads();
  return s.found < end ? s.found : s.last;
}

// All of a sampled row behind the search for the highest logit.
__device__ void sample_row(Team& team, Shared& s, Scores& scores, const SampleArguments& a, const SamplingRow& p,
                           int row, int begin, int end) {
  if (p.top_k > 0 && p.top_k < a.vocab_size) {
    double unused;
    const float v = value_of(find_threshold<false>(team, s, scores, a, begin, end, p.top_k, 0.0, unused));
    scores.top_distance = scores.best - v;
    scores.top_score = scores.score(v);
  }
  double limit = 0.0;
  u32 border_key = 0;
  if (p.top_p < 1.0) border_key = find_threshold<true>(team, s, scores, a, begin, end, 0, p.top_p, limit);
  const Kept kept = kept_of(p, scores, border_key, limit);

  double sum = 0.0;
  u32 equal = 0;
  for (int i = begin + threadIdx.x; i < end; i += THREADS) {
    const double w = kept.weight(scores, i);
    if (kept.nucleus && w == kept.border) {
      equal++;
    } else {
      sum += w;
    }
  }
  sum = block_sum(sum, s.sums);
  equal = block_sum(equal, s.counts);
  if (threadIdx.x == 0) {
    team.workspace->kept[blockIdx.x] = sum;
    team.workspace->equal[blockIdx.x] = equal;
  }
  team.wait();
  const double drawn = find_block(team, s, kept);
  const int block = s.found < MAX_BLOCKS ? s.found : s.last;
  if (block != blockIdx.x) return;
  const int token = find_token(s, scores, kept, begin, end, drawn);
  if (threadIdx.x == 0) write_token(a, row, token);
}

extern "C" __global__ void __launch_bounds__(THREADS) sample(const __grid_constant__ SampleArguments a) {
  __shared__ Shared s;
  let_next_start();
  wait_for_previous();
  const int row = a.first_row + blockIdx.y;
  const SamplingRow p = a.rows[row];
  const int position = a.positions[row];
  if (!p.live || position < 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      tell_host(a, row, ROW_IS_IDLE);
      end_row(a);
    }
    return;
  }
  const int stretch = ((a.vocab_size + gridDim.x - 1) / gridDim.x + 31) / 32 * 32;
  const int begin = min((int)blockIdx.x * stretch, a.vocab_size), end = min(begin + stretch, a.vocab_size);
  const bool sampled = p.temperature != 0.0;
  Scores scores = {};
  scores.logits = a.logits + (u64)blockIdx.y * a.vocab_size;
  scores.seen = a.seen + (u64)row * a.seen_words;
  scores.penalty = p.penalty;
  scores.penalized = p.penalty != 1.0f;
  Team team = {a.workspace + row, 0, 0};

  // Of equal logits the lowest id is the largest of these.
  u64 best = 0;
#pragma unroll 4
  for (int i = begin + threadIdx.x; i < end; i += THREADS) {
    best = max(best, (u64)key_of(scores.value(i)) << 32 | ~(u32)i);
  }
  best = block_max(best, s.room);
  if (threadIdx.x == 0) atomicMax(&team.workspace->best, best);
  if (!sampled) {
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&team.workspace->arrivals, 1) != gridDim.x - 1) return;
    __threadfence();
    write_token(a, row, token_of(__ldcg(&team.workspace->best)));
  } else {
    if (threadIdx.x == 0) s.uniform = uniform(p.seed, p.index);
    for (int which = 0; which < HISTOGRAMS; which++) team.clear(which);
    team.wait();
    best = __ldcg(&team.workspace->best);
    const int token = token_of(best);
    if (token >= 0) {
      scores.best = value_of((u32)(best >> 32));
      scores.temperature = p.temperature;
      scores.base = __ddiv_rn((double)scores.best, p.temperature);
      scores.reach = (float)(LOWEST_SCORE * p.temperature);
      scores.top_distance = INFINITY_F;
      scores.top_score = -(double)INFINITY_F;
      sample_row(team, s, scores, a, p, row, begin, end);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
      write_token(a, row, token);
    }
    if (threadIdx.x != 0) return;
    __threadfence();
    if (atomicAdd(&team.workspace->leavers, 1) != gridDim.x - 1) return;
  }
  team.workspace->best = 0;
  team.workspace->arrivals = team.workspace->leavers = 0;
  end_row(a);
}

struct UniformArguments {
  const u64* seeds;
  const u64* indices;
  double* numbers;
  int count;
};

extern "C" __global__ void uniform_numbers(const __grid_constant__ UniformArguments a) {
  let_next_start();
  wait_for_previous();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.count) a.numbers[i] = uniform(a.seeds[i], a.indices[i]);
}
