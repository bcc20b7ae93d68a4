// The dial steers how additive the members' mean is (nae/training/dial.py).
#pragma once
#include <algorithm>
#include <vector>

#include "model.h"

namespace nae {

// In each step the logarithm of the penalty's weight moves by the difference between the target and a running mean of
// what is measured.
struct DialState {
  double log_gamma = 0, running = 0;

  void move(double measured, double target, double log_least) {
    constexpr double speed = 0.05, share = 0.05, log_most = 4;
    running += share * (measured - running);
    log_gamma = std::min(std::max(log_gamma + speed * (target - running), log_least), log_most);
  }
};

// The additivity of the mean over members: one minus the mean over features f and outputs o of
//     min(v_fo / (s_fo + 1e-6 sum over f of s_fo + 1e-12), 1),
// where s is the weighted variance of contributions over the rows and v that of what context causes of them.
template <class T>
class Additivity {
 public:
  Additivity(const Sizes& size, int n_threads)
      : n_features_(size.features), n_outputs_(size.outputs), n_pairs_(size.features * size.outputs), means_(n_threads),
        pairs_(2 * size_t(n_pairs_)) {}

  // Makes room for n rows.
  void make_room(int64_t n) {
    for (std::vector<T>& each : means_) each.resize(std::max<size_t>(each.size(), 2 * size_t(n) * n_outputs_));
  }

  // Finds both variances of a feature, from every member's contributions, and from what context causes of them:
  // (F, n, O) each.
  void measure(const std::vector<const T*>& whole, const std::vector<const T*>& context, const T* weight, int64_t n,
               int feature, int thread) {
    const int64_t n_values = n * n_outputs_, from = feature * n_values;
    T *mean = means_[thread].data(), *apart = mean + n_values;
    add_up(whole, from, n_values, mean);
    add_up(context, from, n_values, apart);
    const T per_member = T(1) / T(whole.size());
    for (int o = 0; o < n_outputs_; ++o) {
      double centre = 0, of_context = 0, spread = 0;
      for (int64_t b = 0; b < n; ++b) centre += double(weight[b] * mean[b * n_outputs_ + o] * per_member);
      centre /= double(n);
      for (int64_t b = 0; b < n; ++b) {
        const double own = double(mean[b * n_outputs_ + o] * per_member) - centre;
        const double by_context = double(apart[b * n_outputs_ + o] * per_member);
        spread += double(weight[b]) * own * own;
        of_context += double(weight[b]) * by_context * by_context;
      }
      pairs_[feature * n_outputs_ + o] = of_context / double(n);
      pairs_[n_pairs_ + feature * n_outputs_ + o] = spread / double(n);
    }
  }

  double value() const {
    double shares = 0;
    for (int o = 0; o < n_outputs_; ++o) {
      double all = 0;
      for (int f = 0; f < n_features_; ++f) all += pairs_[n_pairs_ + f * n_outputs_ + o];
      for (int f = 0; f < n_features_; ++f) {
        const int at = f * n_outputs_ + o;
        shares += std::min(pairs_[at] / (pairs_[n_pairs_ + at] + 1e-6 * all + 1e-12), 1.0);
      }
    }
    return 1 - shares / n_pairs_;
  }

 private:
  static void add_up(const std::vector<const T*>& members, int64_t from, int64_t n, T* sum) {
    std::fill(sum, sum + n, T(0));
    for (const T* each : members)
      for (int64_t i = 0; i < n; ++i) sum[i] += each[from + i];
  }

  const int n_features_, n_outputs_, n_pairs_;
  std::vector<std::vector<T>> means_;  // of each thread: sums over the members, of one feature
  std::vector<double> pairs_;          // (F, O) twice: variances by context, and whole ones
};

}  // namespace nae
