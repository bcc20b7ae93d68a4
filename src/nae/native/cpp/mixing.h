// Experts mixed by their weights, and back.
//
// For a row and a feature, let r be the softmax of its logits over the experts, k what dropout keeps (a factor, or
// zero), u = r k, and x the experts between the row's two slots. The contribution of output o is c_o = sum u x_o, and
// the row adds (w / B) u to the mean routing. Backwards, with d the gradients of the contributions and q that of the
// mean routing:
//     du = sum over o of d_o x_o + (w / B) q,   dl = r (k du - sum r k du),   dx_o = d_o u
// since the softmax has dl = r (dr - sum r dr). Equal weights are the softmax of equal logits over the active experts:
// the same formula holds.
//
// With Gumbel noise g and temperature t, r is the softmax of (l + g) / t over the active experts in training: the formula
// gives the gradient of that, and dl is it divided by t. (The paper adds noise to the logarithm of the softmax of l,
// which is l less a constant for each feature; a softmax does not depend on one.) A single expert has r = 1.
#pragma once
#include "losses.h"
#include "rows.h"

namespace nae::NAE_SET {

// The N vectors of a feature's experts in registers; where N is 0, as many as there are, in memory of the thread.
template <class V, int N, class T>
struct Vectors {
  explicit Vectors(T*) {}
  NAE_INLINE V get(int i) const { return value[i]; }
  NAE_INLINE void set(int i, V to) { value[i] = to; }
  V value[N];
};

template <class V, class T>
struct Vectors<V, 0, T> {
  explicit Vectors(T* memory) : at(memory) {}
  NAE_INLINE V get(int i) const { return load<V>(at + i * kLanes<V>); }
  NAE_INLINE void set(int i, V to) { store(at + i * kLanes<V>, to); }
  T* at;
};

// Marks the experts with the largest logits; of equal ones, the first.
template <class T>
NAE_INLINE void mark_active(int n, int n_active, const T* logits, T* is_active) {
  for (int k = 0; k < n; ++k) {
    int n_before = 0;
    for (int j = 0; j < n; ++j) n_before += logits[j] > logits[k] || (logits[j] == logits[k] && j < k);
    is_active[k] = n_before < n_active ? T(1) : T(0);
  }
}

// Turns logits into weights, in place; N vectors, or `count` of them if N is 0. `noise` may be null.
template <class V, int N, class T>
NAE_INLINE void weigh(const Model<T>& model, T* logits, const T* noise, T* active, int count) {
  constexpr int lanes = kLanes<V>;
  const int n = N ? N : count;
  const T* mask = model.expert_mask;
  if (model.size.active < model.size.experts) {
    mark_active(model.size.experts, model.size.active, logits, active);
    mask = active;
  }
  if (model.size.routing == NAE_EQUAL) {
    const T share = T(1) / model.size.active;
    for (int i = 0; i < n; ++i) store(logits + i * lanes, load<V>(mask + i * lanes) * share);
    return;
  }
  const T inverse_temperature = noise ? T(1) / model.temperature : T(1);
  Vectors<V, N, T> value(logits);
  V most{};
  most -= T(INFINITY);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    V own = load<V>(logits + i * lanes);
    if (noise) own = (own + load<V>(noise + i * lanes)) * inverse_temperature;
    value.set(i, own);
    most = larger(most, load<V>(mask + i * lanes) > 0 ? own : V{} - T(INFINITY));
  }
  const T top = largest_of<T>(most);
  V total{};
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    const V own = load<V>(mask + i * lanes) > 0 ? exp_of<T>(V(value.get(i) - top)) : V{};
    value.set(i, own);
    total += own;
  }
  const T inverse = T(1) / sum_of<T>(total);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) store(logits + i * lanes, value.get(i) * inverse);
}

// Calls `body` with the vectors that the experts of a feature are: their type and, if it is small, their number.
template <class T, class Body>
NAE_INLINE void with_expert_vectors(int width, Body body) {
  constexpr int wide = kLanes<Wide<T>>, narrow = kLanes<Narrow<T>>;
  if (width == wide) return body(Wide<T>{}, std::integral_constant<int, 1>{});
  if (width == 2 * wide) return body(Wide<T>{}, std::integral_constant<int, 2>{});
  if constexpr (narrow < wide)
    if (width == narrow) return body(Narrow<T>{}, std::integral_constant<int, 1>{});
  return body(Narrow<T>{}, std::integral_constant<int, 0>{});
}

template <class V, int N, class T>
NAE_INLINE void mix_block(const Model<T>& model, const Batch<T>& batch, int member, const T* weights, Workspace<T>& ws,
                          Scratch<T>& scratch, Span span, T* mean) {
  constexpr int lanes = kLanes<V>;
  const Sizes& size = model.size;
  const int n = N ? N : size.experts_pad / lanes;
  for (int b = span.first; b < span.end; ++b) {
    T* score = ws.score + int64_t(b) * size.outputs;
    for (int o = 0; o < size.outputs; ++o)
      score[o] = weights[model.intercept_at + o] +
                 (model.start_offset ? model.start_offset[int64_t(member) * size.outputs + o] : T(0));
    const T share = ws.weight[b] / batch.size;
    const bool is_noisy = model.has_gate && size.routing == NAE_GUMBEL && batch.is_training;
    if (is_noisy) draw_gumbel(model, batch, member, b, scratch.noise);
    for (int f = 0; f < size.features; ++f) {
      const int64_t at = int64_t(f) * batch.size + b, own = int64_t(b) * size.logits + f * size.experts_pad;
      const Ends<T> ends = ends_of(ws, at);
      const T* noise = is_noisy ? scratch.noise + f * size.experts_pad : nullptr;
      if (model.has_gate) weigh<V, N>(model, ws.routing + own, noise, scratch.active, n);
      Vectors<V, N, T> used(scratch.used);
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        V part = load<V>((model.has_gate ? ws.routing + own : model.expert_mask) + i * lanes);
        if (ws.kept && batch.is_training) part *= load<V>(ws.kept + own + i * lanes);
        used.set(i, part);
        if (!model.has_gate) continue;
        T* to = mean + f * size.experts_pad + i * lanes;
        store(to, load<V>(to) + share * part);
      }
      const T *lower = ws.experts + int64_t(ends.lower) * size.values, *upper = ws.experts + int64_t(ends.upper) * size.values;
      for (int o = 0; o < size.outputs; ++o) {
        V sum{};
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
          const int e = o * size.experts_pad + i * lanes;
          sum += used.get(i) * (ends.of_lower * load<V>(lower + e) + ends.of_upper * load<V>(upper + e));
        }
        const T contribution = sum_of<T>(sum);
        ws.contribution[at * size.outputs + o] = contribution;
        score[o] += contribution;
      }
    }
  }
}

template <class T>
void mix_rows(const Model<T>& model, const Batch<T>& batch, int member, const T* weights, Workspace<T>& ws,
              Scratch<T>& scratch, int block) {
  const Span span = rows_of(batch, block);
  T* mean = ws.block_routing + int64_t(block) * model.size.logits;
  if (model.has_gate) {
    for (int i = 0; i < model.size.logits; i += kLanes<Narrow<T>>) store(mean + i, Narrow<T>{});
    gate_logits(model, batch, weights, ws, scratch, span);
  }
  if (ws.kept && batch.is_training)
    for (int b = span.first; b < span.end; ++b)
      draw_kept(model, batch, member, b, ws.kept + int64_t(b) * model.size.logits);
  with_expert_vectors<T>(model.size.experts_pad, [&](auto kind, auto n) {
    mix_block<decltype(kind), n()>(model, batch, member, weights, ws, scratch, span, mean);
  });
}

// Gradients of a row's scores, and its loss. There is room for twice the scores at `slope`.
template <class T>
NAE_INLINE double lose(const Model<T>& model, const Batch<T>& batch, const Workspace<T>& ws, int b, T* slope) {
  const int n = model.size.outputs;
  T* shifted = slope + n;
  for (int o = 0; o < n; ++o) shifted[o] = ws.score[int64_t(b) * n + o] + ws.base[int64_t(b) * n + o];
  const T loss = loss_of_row(model, shifted, ws.target + int64_t(b) * n, ws.label[b], slope);
  const T share = ws.is_out[b] ? T(0) : ws.weight[b] / batch.size;
  for (int o = 0; o < n; ++o) slope[o] = ws.is_out[b] ? T(0) : slope[o] * share;
  return ws.is_out[b] ? 0.0 : double(loss) * double(share);
}

template <class V, int N, class T>
NAE_INLINE void back_block(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, Scratch<T>& scratch, Span span,
                           double* loss, T* intercept) {
  constexpr int lanes = kLanes<V>;
  const Sizes& size = model.size;
  const int n = N ? N : size.experts_pad / lanes, n_outputs = size.outputs;
  const T per_degree = size.routing == NAE_GUMBEL ? T(1) / model.temperature : T(1);
  T* row_slope = scratch.row;
  const T output = model.output * 2 / (T(batch.size) * n_outputs * size.features);
  for (int b = span.first; b < span.end; ++b) {
    *loss += lose(model, batch, ws, b, row_slope);
    for (int o = 0; o < n_outputs; ++o) intercept[o] += row_slope[o];
    const T weight = ws.weight[b], share = weight / batch.size;
    for (int f = 0; f < size.features; ++f) {
      const int64_t at = int64_t(f) * batch.size + b;
      T* slope = ws.contribution + at * n_outputs;
      for (int o = 0; o < n_outputs; ++o) {
        slope[o] = row_slope[o] + output * weight * slope[o];
        if (model.has_context) slope[o] += ws.context[at * n_outputs + o];
      }
      if (!model.has_gate) continue;
      const Ends<T> ends = ends_of(ws, at);
      const T *lower = ws.experts + int64_t(ends.lower) * size.values, *upper = ws.experts + int64_t(ends.upper) * size.values;
      Vectors<V, N, T> part(scratch.used);
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i)
        part.set(i, model.has_context ? share * load<V>(ws.mean_slope + f * size.experts_pad + i * lanes) : V{});
      for (int o = 0; o < n_outputs; ++o)
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
          const int e = o * size.experts_pad + i * lanes;
          const V own_experts = ends.of_lower * load<V>(lower + e) + ends.of_upper * load<V>(upper + e);
          part.set(i, part.get(i) + slope[o] * own_experts);
        }
      const int64_t own = int64_t(b) * size.logits + f * size.experts_pad;
      V total{};
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        V used = load<V>(ws.routing + own + i * lanes);
        if (ws.kept) used *= load<V>(ws.kept + own + i * lanes);
        part.set(i, part.get(i) * used);
        total += part.get(i);
      }
      const T sum = sum_of<T>(total);
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        const V routing = load<V>(ws.routing + own + i * lanes);
        store(ws.slope + own + i * lanes, per_degree * (part.get(i) - routing * sum));
        if (ws.kept) store(ws.routing + own + i * lanes, routing * load<V>(ws.kept + own + i * lanes));
      }
    }
  }
}

template <class T>
void back_rows(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, Scratch<T>& scratch, int block) {
  const Span span = rows_of(batch, block);
  T* intercept = ws.block_intercept + int64_t(block) * model.size.outputs;
  for (int o = 0; o < model.size.outputs; ++o) intercept[o] = 0;
  double loss = 0;
  with_expert_vectors<T>(model.size.experts_pad, [&](auto kind, auto n) {
    back_block<decltype(kind), n()>(model, batch, ws, scratch, span, &loss, intercept);
  });
  ws.block_loss[block] = loss;
  if (model.is_mixed) back_sums(model, ws, span);
}

// Adds every row's gradient of the experts to the two slots of a feature that it lies between.
template <class V, int N, class T>
NAE_INLINE void scatter_experts_of(const Model<T>& model, const Batch<T>& batch, const Workspace<T>& ws, T* to,
                                   int feature) {
  constexpr int lanes = kLanes<V>;
  const Sizes& size = model.size;
  const int n = N ? N : size.experts_pad / lanes, first = model.first_slot[feature];
  for (int b = 0; b < batch.size; ++b) {
    const int64_t at = int64_t(feature) * batch.size + b;
    const Ends<T> ends = ends_of(ws, at);
    const int64_t own_row = int64_t(b) * size.logits + feature * size.experts_pad;
    const T* used = model.has_gate ? ws.routing + own_row : ws.kept ? ws.kept + own_row : model.expert_mask;
    T *lower = to + int64_t(ends.lower - first) * size.values, *upper = to + int64_t(ends.upper - first) * size.values;
    for (int o = 0; o < size.outputs; ++o) {
      const T slope = ws.contribution[at * size.outputs + o];
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        const int e = o * size.experts_pad + i * lanes;
        const V own = slope * load<V>(used + i * lanes);
        store(lower + e, load<V>(lower + e) + ends.of_lower * own);
        store(upper + e, load<V>(upper + e) + ends.of_upper * own);
      }
    }
  }
}

template <class T>
void scatter_experts(const Model<T>& model, const Batch<T>& batch, const Workspace<T>& ws, Scratch<T>& scratch,
                     int feature) {
  const int64_t n = int64_t(model.n_slots[feature] + 1) * model.size.values;
  for (int64_t i = 0; i < n; i += kLanes<Narrow<T>>) store(scratch.d_experts + i, Narrow<T>{});
  if (model.live[feature] == 0) return;
  with_expert_vectors<T>(model.size.experts_pad, [&](auto kind, auto n_vectors) {
    scatter_experts_of<decltype(kind), n_vectors()>(model, batch, ws, scratch.d_experts, feature);
  });
}

}  // namespace nae::NAE_SET
