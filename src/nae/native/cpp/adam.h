// AdamW with decoupled decay, and the running mean of the weights, in one pass.
//
//     m += (1 - b1) (g - m),  v = b2 v + (1 - b2) g g,
//     w = (1 - rate decay) w - rate / c1  m / (sqrt(v / c2) + eps),  mean += share (w - mean)
// with c1 = 1 - b1^n and c2 = 1 - b2^n after n steps.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

template <class V, class T>
NAE_INLINE V root_of(V value) {
  V found;
  for (int i = 0; i < kLanes<V>; ++i) found[i] = std::sqrt(value[i]);
  return found;
}

// Moves n parameters, a whole number of units, from position `at` of the member's.
template <class T>
void move_parameters(Member<T>& member, const Move& move, int64_t at, int64_t n, const T* gradients) {
  using V = Narrow<T>;
  constexpr T first_share = T(1 - 0.9), decay = T(0.999), second_share = T(1 - 0.999), epsilon = T(1e-8);
  if (move.is_dry) {
    for (int64_t i = 0; i < n; i += kLanes<V>) store(member.gradients + at + i, load<V>(gradients + i));
    return;
  }
  const T keep = T(1 - move.rate * move.weight_decay), step = T(move.rate / move.first_correction);
  const T unbiased = T(1 / std::sqrt(move.second_correction)), share = T(move.mean_share);
  T *weights = member.weights + at, *first = member.first + at, *second = member.second + at;
  T* mean = member.mean ? member.mean + at : nullptr;
  for (int64_t i = 0; i < n; i += kLanes<V>) {
    const V g = load<V>(gradients + i), m0 = load<V>(first + i);
    const V m = m0 + first_share * (g - m0);
    const V v = decay * load<V>(second + i) + second_share * g * g;
    const V w = load<V>(weights + i) * keep - step * m / (root_of<V, T>(v) * unbiased + epsilon);
    store(first + i, m);
    store(second + i, v);
    store(weights + i, w);
    if (mean) store(mean + i, load<V>(mean + i) + share * (w - load<V>(mean + i)));
  }
}

}  // namespace nae::NAE_SET
