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
//
// Roughness. Sum over slots of a_s times the mean of r_s^2 over the C experts, or gate terms, with the residual
// r_s = y_s - l_s y_(s-1) - (1 - l_s) y_(s+1): with t = 2 a_s r_s / C, dy_s = t, dy_(s-1) = -l_s t, dy_(s+1) = -(1 - l_s) t.
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

// Writes contributions minus own effects, and the variance, of a feature with one output.
template <class T>
NAE_INLINE void compare_one(const Batch<T>& batch, Workspace<T>& ws, int feature) {
  const int64_t from = int64_t(feature) * batch.size;
  const T *weight = ws.weight, *whole = ws.contribution + from, *mixed = ws.mixed;
  T* context = ws.context + from;
  for (int b = 0; b < batch.size; ++b) {
    const Ends<T> ends = ends_of(ws, from + b);
    context[b] = whole[b] - (ends.of_lower * mixed[ends.lower] + ends.of_upper * mixed[ends.upper]);
  }
  const T n = T(batch.size), centre = sum_rows_of<T>(batch.size, [&](int b) { return weight[b] * whole[b]; }) / n;
  const auto apart = [&](int b) {
    const T own = whole[b] - centre;
    return weight[b] * own * own;
  };
  ws.spread[feature] = sum_rows_of<T>(batch.size, apart) / n;
}

// The same with several outputs, whose numbers stand together.
template <class T>
NAE_INLINE void compare_several(const Batch<T>& batch, Workspace<T>& ws, int n_outputs, int feature) {
  const int64_t from = int64_t(feature) * batch.size;
  const T* mixed = ws.mixed;
  T *centre = ws.of_output + int64_t(feature) * n_outputs, *spread = ws.spread + int64_t(feature) * n_outputs;
  for (int o = 0; o < n_outputs; ++o) centre[o] = spread[o] = 0;
  for (int b = 0; b < batch.size; ++b) {
    const Ends<T> ends = ends_of(ws, from + b);
    const T *lower = mixed + int64_t(ends.lower) * n_outputs, *upper = mixed + int64_t(ends.upper) * n_outputs;
    const T *whole = ws.contribution + (from + b) * n_outputs, share = ws.weight[b] / batch.size;
    T* context = ws.context + (from + b) * n_outputs;
    for (int o = 0; o < n_outputs; ++o) context[o] = whole[o] - (ends.of_lower * lower[o] + ends.of_upper * upper[o]);
    for (int o = 0; o < n_outputs; ++o) centre[o] += share * whole[o];
  }
  for (int b = 0; b < batch.size; ++b) {
    const T *whole = ws.contribution + (from + b) * n_outputs, share = ws.weight[b] / batch.size;
    for (int o = 0; o < n_outputs; ++o) spread[o] += share * (whole[o] - centre[o]) * (whole[o] - centre[o]);
  }
}

template <class T>
void compare_own(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, int feature) {
  using V = Narrow<T>;
  const Sizes& size = model.size;
  const int first = model.first_slot[feature], end = model.first_slot[feature + 1], n_outputs = size.outputs;
  const int width = size.experts_pad;
  const T* routing = ws.mean_routing + feature * width;
  for (int s = first; s < end; ++s)
    for (int o = 0; o < n_outputs; ++o) {
      const T* own = ws.experts + int64_t(s) * size.values + o * width;
      V sum{};
      for (int i = 0; i < width; i += kLanes<V>) sum += load<V>(routing + i) * load<V>(own + i);
      ws.mixed[int64_t(s) * n_outputs + o] = sum_of<T>(sum);
    }
  if (n_outputs == 1)
    compare_one(batch, ws, feature);
  else
    compare_several(batch, ws, n_outputs, feature);
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
  T* factor = ws.of_output + int64_t(feature) * n_outputs;
  for (int o = 0; o < n_outputs; ++o) {
    const T floor = context_floor(model, ws, is_relative, o) + T(1e-12), spread = ws.spread[feature * n_outputs + o];
    factor[o] = 2 * strength / (T(n_outputs) * size.features * batch.size * (spread + floor));
  }
  const int64_t from = int64_t(feature) * batch.size;
  for (int b = 0; b < batch.size; ++b) {
    const Ends<T> ends = ends_of(ws, from + b);
    T *lower = ws.mixed + int64_t(ends.lower) * n_outputs, *upper = ws.mixed + int64_t(ends.upper) * n_outputs;
    T *context = ws.context + (from + b) * n_outputs, weight = ws.weight[b];
    for (int o = 0; o < n_outputs; ++o) context[o] *= factor[o] * weight;
    for (int o = 0; o < n_outputs; ++o) lower[o] -= ends.of_lower * context[o];
    for (int o = 0; o < n_outputs; ++o) upper[o] -= ends.of_upper * context[o];
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

// Adds what the penalty on rough curves says about a table of a feature, `width` columns wide, `n_curves` of them used.
template <class T>
void smooth(const Model<T>& model, const T* table, T* d_table, int width, int n_curves, int feature) {
  const int first = model.first_slot[feature];
  table += int64_t(first) * width;
  for (int s = 1; s + 1 < model.n_slots[feature]; ++s) {
    const T weight = 2 * model.roughness[first + s] / n_curves, left = model.left[first + s];
    if (weight == 0) continue;
    const T* own = table + int64_t(s) * width;
    T* d = d_table + int64_t(s) * width;
    for (int i = 0; i < width; ++i) {
      const T slope = weight * (own[i] - left * own[i - width] - (1 - left) * own[i + width]);
      d[i] += slope;
      d[i - width] -= left * slope;
      d[i + width] -= (1 - left) * slope;
    }
  }
}

template <class T>
void smooth_slots(const Model<T>& model, const Workspace<T>& ws, Scratch<T>& scratch, int feature) {
  const Sizes& size = model.size;
  smooth(model, ws.experts, scratch.d_experts, size.values, size.outputs * size.experts, feature);
  if (!model.has_gate) return;
  const int n_terms = model.is_mixed ? size.terms : size.terms / size.experts_pad * size.experts;
  smooth(model, ws.terms, scratch.d_terms, size.terms_pad, n_terms, feature);
}

}  // namespace nae::NAE_SET
