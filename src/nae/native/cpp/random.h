// Random numbers that only depend on a counter: SplitMix64 (Steele, Lea and Flood, 2014) hashes it. So a number does not
// depend on who asks for it, and torch draws the same (nae/network/noise.py).
//
// A step draws a number for every row, expert, feature and member, in this order: number i is the i-th part of the
// step's words, beginning with the lowest bits of each. First come the 32 bits of each piece of Gumbel noise, then the
// bytes that decide what is dropped.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

template <int Bytes>
using WordsOf = Vector<uint64_t, Bytes>;
using Words = WordsOf<NAE_BYTES < 32 ? 16 : NAE_BYTES>;

NAE_INLINE Words hash_words(Words word) {
  word *= uint64_t(0x9E3779B97F4A7C15);
  word = (word ^ (word >> 30)) * uint64_t(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * uint64_t(0x94D049BB133111EB);
  return word ^ (word >> 31);
}

// Calls visit(position among the logits of a row, number of `Bits` bits) for all experts and features of a row.
template <int Bits, class Visit>
NAE_INLINE void draw_row(const Sizes& size, uint64_t counter, int member, int row, Visit visit) {
  constexpr int lanes = kLanes<Words>, shift = Bits == 8 ? 3 : 1;
  constexpr uint64_t per_word = 64 / Bits;
  static_assert(per_word == 1 << shift);
  constexpr uint64_t most = (uint64_t(1) << Bits) - 1;
  Words lane;
  for (int i = 0; i < lanes; ++i) lane[i] = uint64_t(i) * size.members;
  for (int k = 0; k < size.experts; ++k)
    for (int f = 0; f < size.features; f += lanes) {
      const uint64_t first = ((uint64_t(row) * size.experts + k) * size.features + f) * size.members + member;
      const Words at = lane + first;
      const Words numbers = (hash_words((at >> shift) + counter) >> ((at & (per_word - 1)) * Bits)) & most;
      for (int i = 0; i < lanes && f + i < size.features; ++i) visit((f + i) * size.experts_pad + k, numbers[i]);
    }
}

// Writes what a row keeps, (features, experts_pad): zero where an expert's weight is dropped, else a factor.
template <class T>
void draw_kept(const Model<T>& model, const Batch<T>& batch, int member, int row, T* kept) {
  draw_row<8>(model.size, batch.dropout, member, row, [&](int at, uint64_t byte) {
    kept[at] = byte < uint64_t(model.n_kept) ? model.kept_factor : T(0);
  });
}

// Writes the Gumbel noise of a row, (features, experts_pad): -log(-log(u)) with u = (n + 1/2) / 2^23 from 23 random
// bits, which single precision holds exactly.
template <class T>
void draw_gumbel(const Model<T>& model, const Batch<T>& batch, int member, int row, T* noise) {
  using V = Narrow<T>;
  constexpr int n_bits = 23;
  constexpr T scale = T(1) / T(1 << n_bits);
  draw_row<32>(model.size, batch.noise, member, row,
               [&](int at, uint64_t word) { noise[at] = (T(int32_t(word >> (32 - n_bits))) + T(0.5)) * scale; });
  for (int i = 0; i < model.size.logits; i += kLanes<V>) {
    const V uniform = load<V>(noise + i);
    const V drawn = uniform > 0 ? uniform : V{} + T(0.5);  // where nothing is drawn, since no expert is there
    store(noise + i, V(-log_of<T>(V(-log_of<T>(drawn)))));
  }
}

}  // namespace nae::NAE_SET
