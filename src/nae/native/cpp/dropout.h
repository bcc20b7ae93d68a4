// Which expert weights a step drops. Random bytes come from SplitMix64, which hashes a counter: byte number i of a step
// decides about row, expert, feature and member in this order, whoever asks for it.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

using Words = Vector<uint64_t, NAE_BYTES < 32 ? 16 : NAE_BYTES>;

NAE_INLINE Words hash_words(Words word) {
  word *= 0x9E3779B97F4A7C15ull;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

// Writes factors for row number `row` of the batch: (features, experts_pad), zero where a weight is dropped.
template <class T>
void draw_kept(const Model<T>& model, const Batch<T>& batch, int member, int row, T* kept) {
  const int n_features = model.size.features, n_experts = model.size.experts, n_members = model.size.members;
  constexpr int lanes = kLanes<Words>;
  Words lane;
  for (int i = 0; i < lanes; ++i) lane[i] = uint64_t(i) * n_members;
  for (int k = 0; k < n_experts; ++k)
    for (int f = 0; f < n_features; f += lanes) {
      const uint64_t first = ((uint64_t(row) * n_experts + k) * n_features + f) * n_members + member;
      const Words at = lane + first;
      const Words bytes = (hash_words((at >> 3) + batch.noise) >> ((at & 7) << 3)) & 255;
      for (int i = 0; i < lanes && f + i < n_features; ++i)
        kept[(f + i) * model.size.experts_pad + k] = bytes[i] < uint64_t(model.n_kept) ? model.kept_factor : T(0);
    }
}

}  // namespace nae::NAE_SET
