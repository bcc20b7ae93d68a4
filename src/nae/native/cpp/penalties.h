// Penalties that look at a feature over all rows or slots.
//
// Context. A contribution c has an own effect e: what it would be with its feature's mean routing over the batch. The
// penalty is strength / (O F) sum of v / (s + floor) over outputs and features, where v = sum (w / B) (c - e)^2 is the
// variance that context causes and s that of c, taken as given. With t = 2 strength / (O F B (s + floor)) w (c - e):
//     dc = t,   de = -t.
// e interpolates the experts on slots, mixed by the mean routing m: e = z with z_s = sum m E_s. Hence dz_s is the sum of
// -t over the rows at s by their shares, dm = sum dz_s E_s, and dE_s = dz_s m.
//
// Variation. strength / O sum over slots of a_s var_s, with var_s the variance of the K experts at s and a_s the slot's
// share: dE_sk = strength a_s 2 / (O K) (E_sk - mean E_s).
#pragma once
#include "rows.h"

namespace nae::NAE_SET {

// Sums over rows in a fixed order that lets eight of them be added at once.
template <class T, class Value>
NAE_INLINE T sum_rows_of(int n, Value value) {
  T sum[8] = {};
  int b = 0;
  for (; b + 8 <= n; b += 8)
    for (int i = 0; i < 8; ++i) sum[i] += value(b + i);
  for (; b < n; ++b) sum[0] += value(b);
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

// The mean routing of a feature, from the sums of blocks.
template <class T>
void average_routing(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, int feature) {
  using V = Narrow<T>;
  const int from = feature * model.size.experts_pad;
  for (int i = from; i < from + model.size.experts_pad; i += kLanes<V>) {
    V sum{};
    for (int block = 0; block < batch.n_blocks; ++block)
      sum += load<V>(ws.block_routing + int64_t(block) * model.size.logits + i);
    store(ws.mean_routing + i, sum);
  }
}

// Writes contributions minus own effects, and the variances, of a feature.
template <class T>
void compare_own(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, int feature) {
  using V = Narrow<T>;
  const Sizes& size = model.size;
  const int first = model.first_slot[feature], end = model.first_slot[feature + 1], n_outputs = size.outputs;
  const T* routing = ws.mean_routing + feature * size.experts_pad;
  for (int s = first; s < end; ++s)
    for (int o = 0; o < n_outputs; ++o) {
      V sum{};
      for (int i = 0; i < size.experts_pad; i += kLanes<V>)
        sum += load<V>(routing + i) * load<V>(ws.experts + int64_t(s) * size.values + o * size.experts_pad + i);
      ws.mixed[int64_t(s) * n_outputs + o] = sum_of<T>(sum);
    }
  const int64_t from = int64_t(feature) * batch.size;
  const T* weight = ws.weight;
  for (int o = 0; o < n_outputs; ++o) {
    for (int b = 0; b < batch.size; ++b) {
      const Ends<T> ends = ends_of(ws, from + b);
      const T own = ends.of_lower * ws.mixed[int64_t(ends.lower) * n_outputs + o] +
                    ends.of_upper * ws.mixed[int64_t(ends.upper) * n_outputs + o];
      ws.context[(from + b) * n_outputs + o] = ws.contribution[(from + b) * n_outputs + o] - own;
    }
    const T* whole = ws.contribution + from * n_outputs + o;
    const T* context = ws.context + from * n_outputs + o;
    const auto variances = [&](auto step) {
      const T n = T(batch.size);
      const T centre = sum_rows_of<T>(batch.size, [&](int b) { return weight[b] * whole[b * step]; }) / n;
      const auto apart = [&](int b) {
        const T own = whole[b * step] - centre;
        return weight[b] * own * own;
      };
      ws.spread[feature * n_outputs + o] = sum_rows_of<T>(batch.size, apart) / n;
      const auto square = [&](int b) { return weight[b] * context[b * step] * context[b * step]; };
      ws.context_variance[feature * n_outputs + o] = sum_rows_of<T>(batch.size, square) / n;
    };
    if (n_outputs == 1)
      variances(std::integral_constant<int, 1>{});
    else
      variances(n_outputs);
  }
}

constexpr double kContextFloor = 1e-2;  // of a variance, where the target's is one

// The constant in the denominator; if `is_relative`, it is smaller where all contributions are small.
template <class T>
NAE_INLINE T context_floor(const Model<T>& model, const Workspace<T>& ws, bool is_relative, int output) {
  if (!is_relative) return T(kContextFloor);
  const int n = model.size.features;
  T total = 0;
  for (int f = 0; f < n; ++f) total += ws.spread[f * model.size.outputs + output];
  const T share = T(8) / n > T(0.1) ? T(8) / n : T(0.1), relative = share * total / n;
  return relative > T(kContextFloor) ? T(kContextFloor) : relative;
}

// Turns `context` and `mixed` of a feature into their gradients, and finds that of its mean routing.
template <class T>
void penalise_context(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, T strength, bool is_relative,
                      int feature) {
  using V = Narrow<T>;
  const Sizes& size = model.size;
  const int first = model.first_slot[feature], end = model.first_slot[feature + 1], n_outputs = size.outputs;
  for (int64_t i = int64_t(first) * n_outputs; i < int64_t(end) * n_outputs; ++i) ws.mixed[i] = 0;
  const int64_t from = int64_t(feature) * batch.size;
  for (int o = 0; o < n_outputs; ++o) {
    const T floor = context_floor(model, ws, is_relative, o) + T(1e-12);
    const T factor =
        2 * strength / (T(n_outputs) * size.features * batch.size * (ws.spread[feature * n_outputs + o] + floor));
    for (int b = 0; b < batch.size; ++b) {
      T* context = ws.context + (from + b) * n_outputs + o;
      const T slope = factor * ws.weight[b] * *context;
      *context = slope;
      const Ends<T> ends = ends_of(ws, from + b);
      ws.mixed[int64_t(ends.lower) * n_outputs + o] -= ends.of_lower * slope;
      ws.mixed[int64_t(ends.upper) * n_outputs + o] -= ends.of_upper * slope;
    }
  }
  for (int i = 0; i < size.experts_pad; i += kLanes<V>) {
    V sum{};
    for (int s = first; s < end; ++s)
      for (int o = 0; o < n_outputs; ++o)
        sum += ws.mixed[int64_t(s) * n_outputs + o] *
               load<V>(ws.experts + int64_t(s) * size.values + o * size.experts_pad + i);
    store(ws.mean_slope + feature * size.experts_pad + i, sum);
  }
}

// Adds what the penalties say about the experts on the slots of a feature.
template <class T>
void penalise_slots(const Model<T>& model, const Workspace<T>& ws, T* d_experts, int feature) {
  using V = Narrow<T>;
  const Sizes& size = model.size;
  if (!model.has_gate || model.live[feature] == 0 || (!model.has_context && model.variation == 0)) return;
  const int first = model.first_slot[feature];
  const T factor = model.variation * 2 / (T(size.outputs) * size.experts), per_expert = T(1) / size.experts;
  for (int s = 0; s < model.n_slots[feature]; ++s)
    for (int o = 0; o < size.outputs; ++o) {
      const T* own = ws.experts + int64_t(first + s) * size.values + o * size.experts_pad;
      T* to = d_experts + int64_t(s) * size.values + o * size.experts_pad;
      const T slope = model.has_context ? ws.mixed[int64_t(first + s) * size.outputs + o] : T(0);
      const T pull = factor * model.variation_share[first + s];
      V total{};
      for (int i = 0; i < size.experts_pad; i += kLanes<V>) total += load<V>(own + i);
      const T mean = sum_of<T>(total) * per_expert;
      for (int i = 0; i < size.experts_pad; i += kLanes<V>) {
        V added = load<V>(to + i) + pull * (load<V>(own + i) - mean) * load<V>(model.expert_mask + i);
        if (model.has_context) added += slope * load<V>(ws.mean_routing + feature * size.experts_pad + i);
        store(to + i, added);
      }
    }
}

}  // namespace nae::NAE_SET
