// Computes: the next token of each row of logits: repetition penalty, temperature, top-k, top-p, min-p, a draw; then
//   the row's token id, position and context length for the next step, and the id for the host
// Arguments: sample: logits, rows, seen, workspace, token_ids, positions, context_lengths, ring, unit, vocab_size,
//   seen_words, first_row, ring_slots, ring_rows; uniform_numbers: seeds, indices, numbers, count
// Requires: 1 <= vocab_size <= LARGEST_VOCABULARY; seen_words * 32 >= vocab_size; first_row >= 0; ring_slots >= 1;
//   ring_rows >= 1; unit * vocab_size <= 9223372036854775808; logits % 4 == 0; rows % 16 == 0; workspace % 16 == 0;
//   ring % 8 == 0; count >= 1
// Launch: grid (blocks of a row, rows) no larger than what runs at once, block 512; each block takes one stretch of the
//   vocabulary. A greedy row is ended by its last block; the blocks of a sampled one wait for each other 2 to 10 times
// Numerics: as the oracle: the penalty in float32, all else in float64, a product with 1 / temperature instead of the
//   quotient; sums in an order fixed by the grid. Thresholds of top-p are found with sums of integers (2^-45), which
//   have no order
// Oracle: inference/engine/sampler.py choose: the same token unless the random number lies within rounding of a border;
//   no difference in 18,000 random cases
// Measured: one row of 151,936 logits on an H200, in a chain of launches: greedy 2.9 us; temperature alone 9; with
//   top-k 20 and top-p 0.8 22; top-p 0.95 of flat logits 24; eight rows: 4, 22, 38, 48 us
// Source: thresholds by histograms of the scores, each narrowing the one before; Philox4x64-10 (Salmon et al. 2011)
#include "sampling.cuh"
#include "sampling_threshold.cuh"

// Logits that a thread loads before it knows what is wanted of them.
#define EARLY 4

// Id and the number of the step in one word: the host needs no other sign that it is there.
__device__ __forceinline__ void tell_host(const SampleArguments& a, const Ending& e, int token) {
  volatile u64* slot = a.ring + (u64)(e.step % a.ring_slots) * a.ring_rows + e.row;
  *slot = (u64)(e.step + 1) << 32 | (u32)token;
  a.workspace[e.row].steps = e.step + 1;
}

__device__ __forceinline__ void write_token(const SampleArguments& a, const Shared& s, int token) {
  const Ending& e = s.ending;
  tell_host(a, e, token);
  if (token < 0) return;
  a.token_ids[e.row] = token;
  a.positions[e.row] = e.position + 1;
  a.context_lengths[e.row] = e.context_length + 1;
  a.rows[e.row].index = s.params.index + 1;
  if (s.params.penalty != 1.0f) atomicOr(&a.seen[(u64)e.row * a.seen_words + token / 32], 1u << token % 32);
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
  double lowest;  // weight
  float reach, border_bin, scale;
  bool nucleus;  // top-p decides: lowest is its border

  // 0 where it is dropped; those on the border are judged by their order later.
  __device__ __forceinline__ double weight(const Scores& scores, int i) const {
    const float v = scores.value(i), distance = scores.best - v;
    if (distance > reach) return 0.0;
    // Weights of different bins differ, so none below the border's bin can be as heavy as the border.
    if (nucleus && fminf(distance * scale, BINS - 1.0f) >= border_bin + 1.0f) return 0.0;
    const double w = scores.weight(v);
    return w < lowest ? 0.0 : w;
  }
};

__device__ __forceinline__ Kept kept_of(const SamplingRow& p, const Scores& scores, u32 border_key) {
  Kept kept = {};
  kept.lowest = p.min_p;
  kept.reach = scores.reach;
  if (p.min_p > 0.0) {
    kept.reach = fminf(kept.reach, (float)(p.temperature * (0.001 - 1.001 * log(p.min_p))));
  }
  if (border_key) {
    const float v = value_of(border_key);
    const double border = scores.weight(v);
    kept.nucleus = border >= p.min_p;  // else min-p rules all on the border out
    if (kept.nucleus) kept.lowest = border;
    kept.scale = FIRST_BINS * (float)scores.per_temperature;
    kept.border_bin = truncf(fminf((scores.best - v) * kept.scale, BINS - 1.0f));
  }
  return kept;
}

// How many of the elements on the border top-p keeps: those that have less than the limit before them.
__device__ __forceinline__ double kept_on_border(double border, double heavier, double limit) {
  double n = fmin(fmax(0.0, ceil((limit - heavier) / border)), LARGEST_VOCABULARY);
  // The quotient may be rounded over a whole number.
  if (n > 0.0 && __dadd_rn(heavier, __dmul_rn(n - 1.0, border)) >= limit) n -= 1.0;
  if (__dadd_rn(heavier, __dmul_rn(n, border)) < limit) n += 1.0;
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
    const double left = kept_on_border(kept.lowest, heavier, s.limit) - (double)equal_before;
    equal_kept = (int)fmin(fmax(left, 0.0), (double)equal);
    weight = __dadd_rn(weight, __dmul_rn((double)equal_kept, kept.lowest));
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
      const bool equal = w == kept.lowest;
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
__device__ void sample_row(Team& team, Shared& s, Scores& scores, const SampleArguments& a, int begin, int end) {
  const SamplingRow& p = s.params;
  if (p.top_k > 0 && p.top_k < a.vocab_size) {
    const float v = value_of(find_threshold<false>(team, s, scores, a, begin, end));
    scores.reach = fminf(scores.reach, scores.best - v);
    scores.top_score = scores.score(v);
  }
  const u32 border_key = p.top_p < 1.0 ? find_threshold<true>(team, s, scores, a, begin, end) : 0;
  const Kept kept = kept_of(p, scores, border_key);

  double sum = 0.0;
  u32 equal = 0;
  for (int i = begin + threadIdx.x; i < end; i += THREADS) {
    const double w = kept.weight(scores, i);
    if (kept.nucleus && w == kept.lowest) {
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
  if (threadIdx.x == 0) write_token(a, s, token);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) sample(const __grid_constant__ SampleArguments a) {
  __shared__ Shared s;
  let_next_start();
  const int row = a.first_row + blockIdx.y;
  const int stretch = ((a.vocab_size + gridDim.x - 1) / gridDim.x + 31) / 32 * 32;
  const int begin = min((int)blockIdx.x * stretch, a.vocab_size), end = min(begin + stretch, a.vocab_size);
  Scores scores = {};
  scores.logits = a.logits + (u64)blockIdx.y * a.vocab_size;
  scores.seen = a.seen + (u64)row * a.seen_words;
  Team team = {a.workspace + row, 0};
  wait_for_previous();
  // All of these are on their way at once.
  float first[EARLY];
#pragma unroll
  for (int k = 0; k < EARLY; k++) {
    first[k] = load_early(scores.logits + min(begin + (int)threadIdx.x + k * THREADS, a.vocab_size - 1));
  }
  const Ending ending = {row, a.positions[row], a.context_lengths[row], team.workspace->steps};
  const SamplingRow p = a.rows[row];
  if (!p.live || ending.position < 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) tell_host(a, ending, ROW_IS_IDLE);
    return;
  }
  if (threadIdx.x == 0) {
    s.params = p;
    s.ending = ending;
  }
  scores.penalty = p.penalty;

  // Of equal logits the lowest id is the largest of these.
  u64 best = 0;
  int i = begin + threadIdx.x;
#pragma unroll
  for (int k = 0; k < EARLY; k++, i += THREADS) {
    if (i < end) best = max(best, (u64)key_of(scores.penalize(first[k], i)) << 32 | ~(u32)i);
  }
#pragma unroll 4
  for (; i < end; i += THREADS) best = max(best, (u64)key_of(scores.value(i)) << 32 | ~(u32)i);
  best = block_max(best, s.room);
  if (threadIdx.x == 0) atomicMax(&team.workspace->best, best);
  const double temperature = s.params.temperature;
  if (temperature == 0.0) {
    if (threadIdx.x != 0) return;
    if (add_in_order(&team.workspace->arrivals, 1) != gridDim.x - 1) return;
    write_token(a, s, token_of(__ldcg(&team.workspace->best)));
  } else {
    if (threadIdx.x == 0) s.uniform = uniform(s.params.seed, s.params.index);
    for (int which = 0; which < HISTOGRAMS; which++) team.clear(which);
    team.wait();
    best = __ldcg(&team.workspace->best);
    const int token = token_of(best);
    if (token >= 0) {
      scores.best = value_of((u32)(best >> 32));
      scores.per_temperature = 1.0 / temperature;
      scores.base = __dmul_rn((double)scores.best, scores.per_temperature);
      scores.reach = (float)(-LOWEST_SCORE * temperature);
      scores.top_score = -(double)INFINITY_F;
      sample_row(team, s, scores, a, begin, end);
    } else if (blockIdx.x == 0 && threadIdx.x == 0) {
      write_token(a, s, token);
    }
    if (threadIdx.x != 0) return;
    if (add_in_order(&team.workspace->leavers, 1) != gridDim.x - 1) return;
  }
  team.workspace->best = 0;
  team.workspace->arrivals = team.workspace->leavers = 0;
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
