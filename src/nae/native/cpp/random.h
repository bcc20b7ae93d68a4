// Random numbers that only depend on a counter: SplitMix64 (Steele, Lea and Flood, 2014) hashes it. So a number does not
// depend on who asks for it, and torch draws the same (nae/engines/torch/noise.py).
//
// A step draws a number for every row, expert, feature and member, in this order: number i is the i-th part of the
// step's words, beginning with the lowest bits of each. First come the 32 bits of each piece of Gumbel noise, then the
// bytes that decide what is dropped.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

// As many words as a register has, but no more than a unit has numbers: experts are padded to whole units.
template <class T>
using WordsFor = Vector<uint64_t, (NAE_BYTES < 8 * kUnit<T> ? NAE_BYTES : 8 * kUnit<T>)>;

template <class Words>
NAE_INLINE Words hash_words(Words word) {
  word *= uint64_t(0x9E3779B97F4A7C15);
  word = (word ^ (word >> 30)) * uint64_t(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * uint64_t(0x94D049BB133111EB);
  return word ^ (word >> 31);
}

// Calls visit(position among the logits of a row, numbers of `Bits` bits) for as many experts of a feature as a vector of
// words has lanes; there may be more of these than experts.
template <int Bits, class Words, class Visit>
NAE_INLINE void draw_row(const Sizes& size, uint64_t counter, int member, int row, Visit visit) {
  constexpr int lanes = kLanes<Words>, shift = Bits == 8 ? 3 : 1;
  constexpr uint64_t per_word = 64 / Bits, most = (uint64_t(1) << Bits) - 1;
  static_assert(per_word == 1 << shift);
  const uint64_t apart = uint64_t(size.features) * size.members;  // numbers between one expert and the next
  const int n_experts = size.experts, n_features = size.features, width = size.experts_pad;
  Words lane;
  for (int i = 0; i < lanes; ++i) lane[i] = uint64_t(i) * apart;
  for (int f = 0; f < n_features; ++f)
    for (int k = 0; k < n_experts; k += lanes) {
      const uint64_t first = (uint64_t(row) * n_experts + k) * apart + uint64_t(f) * size.members + member;
      const Words at = lane + first;
      visit(f * width + k, Words((hash_words((at >> shift) + counter) >> ((at & (per_word - 1)) * Bits)) & most));
    }
}

// Writes what a row keeps, (features, experts_pad): zero where an expert's weight is dropped, else a factor.
template <class T>
void draw_kept(const Model<T>& model, const Batch<T>& batch, int member, int row, T* kept) {
  using Words = WordsFor<T>;
  using V = Vector<T, kLanes<Words> * sizeof(T)>;
  using Numbers = Vector<int32_t, kLanes<Words> * 4>;
  const Words n_kept = Words{} + uint64_t(model.n_kept);
  const T* mask = model.expert_mask;
  const T factor = model.kept_factor;
  const int width = model.size.experts_pad;
  draw_row<8, Words>(model.size, batch.dropout, member, row, [&](int at, Words bytes) {
    const V is_kept = -__builtin_convertvector(__builtin_convertvector(bytes < n_kept, Numbers), V);
    store(kept + at, V(is_kept * factor * load<V>(mask + at % width)));
  });
}

// Writes the Gumbel noise of a row, (features, experts_pad): -log(-log(u)) with u = (n + 1/2) / 2^23 from 23 random
// bits, which single precision holds exactly.
template <class T>
void draw_gumbel(const Model<T>& model, const Batch<T>& batch, int member, int row, T* noise) {
  using Words = WordsFor<T>;
  using V = Vector<T, kLanes<Words> * sizeof(T)>;
  using Numbers = Vector<int32_t, kLanes<Words> * 4>;
  constexpr int n_bits = 23;
  constexpr T scale = T(1) / T(1 << n_bits);
  draw_row<32, Words>(model.size, batch.noise, member, row, [&](int at, Words words) {
    const auto numbers = __builtin_convertvector(words >> (32 - n_bits), Numbers);
    const V uniform = (__builtin_convertvector(numbers, V) + T(0.5)) * scale;
    store(noise + at, V(-log_of<T>(V(-log_of<T>(uniform)))));
  });
}

}  // namespace nae::NAE_SET
