// The loss of a row and its slope along each score. Losses of several outputs are averaged over the outputs, each of
// which has a parameter of its own.
//
// With score s, target y and error e = s - y:
//     squared   e^2                                    2 e
//     absolute  |e|                                    sign e
//     Huber     e^2 / 2, or d (|e| - d / 2) if |e| > d  e, or d sign e
//     quantile  max((1 - q) e, -q e)                   1 - q above the target, -q below, half of both at it
//     Poisson   exp(s) - y s                           exp(s) - y
//     gamma     s + y exp(-s)                          1 - y exp(-s)
//     Tweedie   exp((2 - p) s) / (2 - p) - y exp((1 - p) s) / (1 - p)
//                                                      exp((2 - p) s) - y exp((1 - p) s)
//     logistic  log(1 + exp(s)) - y s                  1 / (1 + exp(-s)) - y
// Terms 0 * error keep a score that is not a number from being taken for a good one.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

template <class T>
struct LossAndSlope {
  T loss, slope;
};

template <class T>
NAE_INLINE LossAndSlope<T> loss_of(int kind, T option, T score, T target) {
  const T error = score - target;
  switch (kind) {
    case NAE_SQUARED:
      return {error * error, 2 * error};
    case NAE_ABSOLUTE:
      return {std::abs(error), T((error > 0) - (error < 0)) + 0 * error};
    case NAE_HUBER: {
      const T size = std::abs(error);
      if (size <= option) return {T(0.5) * error * error, error};
      return {option * (size - T(0.5) * option), (error > 0 ? option : -option) + 0 * error};
    }
    case NAE_QUANTILE: {
      // max(q e, (q - 1) e) with e = target - score; where both are equal, the slope is half of each.
      const T below = -option + 0 * error, above = 1 - option + 0 * error;
      return {error > 0 ? (1 - option) * error : -option * error, error == 0 ? T(0.5) - option : error > 0 ? above : below};
    }
    case NAE_POISSON: {
      const T mean = std::exp(score);
      return {mean - target * score, mean - target};
    }
    case NAE_GAMMA: {
      const T ratio = target * std::exp(-score);
      return {score + ratio, 1 - ratio};
    }
    case NAE_TWEEDIE: {
      const T over = 2 - option, under = 1 - option, mean = std::exp(over * score);
      const T part = target * std::exp(under * score);
      return {mean / over - part / under, mean - part};
    }
    default: {  // logistic: log(1 + exp(score)) - target score
      const T small = std::exp(-std::abs(score)), chance = (score > 0 ? T(1) : small) / (1 + small);
      return {(score > 0 ? score : T(0)) + std::log1p(small) - target * score, chance - target + 0 * score};
    }
  }
}

// Minus the logarithm of the softmax at `label`; its slope is the softmax, less one at the label.
template <class T>
NAE_INLINE T cross_entropy(int n, const T* score, int label, T* slope) {
  T most = score[0];
  for (int o = 1; o < n; ++o) most = score[o] > most ? score[o] : most;
  T total = 0;
  for (int o = 0; o < n; ++o) total += slope[o] = std::exp(score[o] - most);
  for (int o = 0; o < n; ++o) slope[o] /= total;
  slope[label] -= 1;
  return std::log(total) + most - score[label];
}

template <class T>
T loss_of_row(const Model<T>& model, const T* score, const T* target, int label, T* slope) {
  const int n = model.size.outputs;
  if (model.size.loss == NAE_CROSS_ENTROPY) return cross_entropy(n, score, label, slope);
  T total = 0;
  for (int o = 0; o < n; ++o) {
    const auto found = loss_of(model.size.loss, model.loss_option[o], score[o], target[o]);
    total += found.loss;
    slope[o] = found.slope / n;
  }
  return total / n;
}

}  // namespace nae::NAE_SET
