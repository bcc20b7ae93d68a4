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
#include "forms.h"
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

// Turns the logits of `n` vectors into weights: those of a feature, or of several that share a vector, in groups of
// `Group` lanes. N is the number of vectors of a feature where it is known, else 0. `noise` may be null, `mask` is one
// where an expert is active.
template <class V, int N, int Group, class T>
NAE_INLINE void soften(T* logits, const T* noise, const T* mask, T inverse_temperature, int count) {
  constexpr int lanes = kLanes<V>;
  const int n = N ? N : count;
  Vectors<V, N, T> value(logits);
  V most{};
  most -= T(INFINITY);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    V own = load<V>(logits + i * lanes);
    if (noise) own = (own + load<V>(noise + i * lanes)) * inverse_temperature;
    own = load<V>(mask + i * lanes) > 0 ? own : V{} - T(INFINITY);
    value.set(i, own);
    most = larger(most, own);
  }
  most = largest_of_groups<Group>(most);
  V total{};
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    const V own = exp_of<T>(V(value.get(i) - most));
    value.set(i, own);
    total += own;
  }
  const V inverse = T(1) / sum_groups<Group>(total);
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) store(logits + i * lanes, V(value.get(i) * inverse));
}

// Turns the logits of a feature into weights.
template <class V, int N, class T>
NAE_INLINE void weigh(const Model<T>& model, T* logits, const T* noise, T inverse_temperature, T* active, int count) {
  constexpr int lanes = kLanes<V>;
  const int n = N ? N : count;
  const T* mask = model.expert_mask;
  if (model.size.active < model.size.experts) {
    mark_active(model.size.experts, model.size.active, logits, active);
    mask = active;
  }
  if (model.size.routing != NAE_EQUAL) return soften<V, N, lanes>(logits, noise, mask, inverse_temperature, n);
  const T share = T(1) / model.size.active;
  for (int i = 0; i < n; ++i) store(logits + i * lanes, load<V>(mask + i * lanes) * share);
}

// Turns the logits of a row into weights; `noise` may be null.
template <class V, int N, class T>
NAE_INLINE void weigh_row(const Model<T>& model, T* logits, const T* noise, Scratch<T>& scratch) {
  constexpr int lanes = kLanes<V>, wide = kLanes<Wide<T>>;
  const int width = model.size.experts_pad, end = model.size.logits, n = N ? N : width / lanes;
  const T inverse_temperature = noise ? T(1) / model.temperature : T(1);
  int at = 0;
  if constexpr (N == 1 && wide == 2 * lanes) {  // two features share a vector
    if (model.size.active == model.size.experts && model.size.routing != NAE_EQUAL) {
      T mask[wide];
      for (int i = 0; i < wide; ++i) mask[i] = model.expert_mask[i % lanes];
      for (; at + wide <= end; at += wide)
        soften<Wide<T>, 1, lanes>(logits + at, noise ? noise + at : nullptr, mask, inverse_temperature, 1);
    }
  }
  for (; at < end; at += width)
    weigh<V, N>(model, logits + at, noise ? noise + at : nullptr, inverse_temperature, scratch.active, n);
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

// Writes the weights that a row uses, (features, experts_pad), and adds a share of them to the mean.
template <class V, class T>
NAE_INLINE void use_weights(const Model<T>& model, const Workspace<T>& ws, int64_t row, T share, bool is_thinned, T* used,
                            T* mean) {
  constexpr int lanes = kLanes<V>;
  const int n = model.size.logits, width = model.size.experts_pad;
  if (!model.has_gate) {
    for (int at = 0; at < n; at += lanes)
      store(used + at, load<V>((is_thinned ? ws.kept + row + at : model.expert_mask + at % width)));
    return;
  }
  const T *routing = ws.routing + row, *kept = ws.kept + (is_thinned ? row : 0);
  for (int at = 0; at < n; at += lanes) {
    V own = load<V>(routing + at);
    if (is_thinned) own *= load<V>(kept + at);
    store(used + at, own);
    store(mean + at, load<V>(mean + at) + share * own);
  }
}

// Writes what scores begin at: the intercept, and that of the start. Where outputs are sorted, so are these, and `order`
// tells which output each was that of.
template <class T>
NAE_INLINE void find_offset(const Model<T>& model, int member, const T* weights, T* offset, int16_t* order) {
  const int n = model.size.outputs;
  const T* start = model.start_offset ? model.start_offset + int64_t(member) * n : nullptr;
  for (int o = 0; o < n; ++o) offset[o] = weights[model.intercept_at + o] + (start ? start[o] : T(0));
  for (int o = 0; o < n; ++o) order[o] = int16_t(o);
  if (model.form && model.sorts_outputs) sort_along(offset, order, n, 1);
}

template <class V, int N, class T>
NAE_INLINE void mix_block(const Model<T>& model, const Batch<T>& batch, int member, const T* weights, Workspace<T>& ws,
                          Scratch<T>& scratch, Span span, T* mean) {
  constexpr int lanes = kLanes<V>;
  const Sizes& size = model.size;
  const int width = size.experts_pad, n = N ? N : width / lanes, n_features = size.features, n_outputs = size.outputs;
  const int n_rows = batch.size, n_logits = size.logits, n_values = size.values;
  const bool has_gate = model.has_gate, is_thinned = ws.kept && batch.is_training;
  const bool is_noisy = has_gate && size.routing == NAE_GUMBEL && batch.is_training;
  const T* experts = ws.experts;
  T* offset = scratch.row;
  find_offset(model, member, weights, offset, scratch.order);
  for (int b = span.first; b < span.end; ++b) {
    const int64_t row = int64_t(b) * n_logits;
    T *score = ws.score + int64_t(b) * n_outputs, *used_by_row = scratch.used;
    for (int o = 0; o < n_outputs; ++o) score[o] = offset[o];
    if (has_gate) {
      if (is_noisy) draw_gumbel(model, batch, member, b, scratch.noise);
      weigh_row<V, N>(model, ws.routing + row, is_noisy ? scratch.noise : nullptr, scratch);
    }
    use_weights<V>(model, ws, row, ws.weight[b] / n_rows, is_thinned, used_by_row, mean);
    for (int f = 0; f < n_features; ++f) {
      const int64_t at = int64_t(f) * n_rows + b;
      const Ends<T> ends = ends_of(ws, at);
      const T *used = used_by_row + f * width, *lower = experts + int64_t(ends.lower) * n_values;
      const T* upper = experts + int64_t(ends.upper) * n_values;
      T* contributions = ws.contribution + at * n_outputs;
      for (int o = 0; o < n_outputs; ++o) {
        V sum{};
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
          const int e = o * width + i * lanes;
          sum += load<V>(used + i * lanes) * (ends.of_lower * load<V>(lower + e) + ends.of_upper * load<V>(upper + e));
        }
        const T contribution = sum_of<T>(sum);
        contributions[o] = contribution;
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

// Turns a row's contributions to a feature into their gradients.
template <class T>
NAE_INLINE void begin_slope(const T* row_slope, T pull, const T* context, int n_outputs, T* slope) {
  for (int o = 0; o < n_outputs; ++o) slope[o] = row_slope[o] + pull * slope[o];
  if (!context) return;
  for (int o = 0; o < n_outputs; ++o) slope[o] += context[o];
}

template <class V, int N, class T>
NAE_INLINE void back_block(const Model<T>& model, const Batch<T>& batch, Workspace<T>& ws, Scratch<T>& scratch, Span span,
                           double* loss, T* intercept) {
  constexpr int lanes = kLanes<V>;
  const Sizes& size = model.size;
  const int width = size.experts_pad, n = N ? N : width / lanes, n_outputs = size.outputs, n_features = size.features;
  const int n_rows = batch.size, n_values = size.values, n_logits = size.logits;
  const bool has_gate = model.has_gate;
  const T per_degree = size.routing == NAE_GUMBEL ? T(1) / model.temperature : T(1);
  const T output = model.output * 2 / (T(n_rows) * n_outputs * n_features);
  const T *experts = ws.experts, *all_kept = ws.kept, *mean_slope = model.has_context ? ws.mean_slope : nullptr;
  T* row_slope = scratch.row;
  for (int b = span.first; b < span.end; ++b) {
    *loss += lose(model, batch, ws, b, row_slope);
    for (int o = 0; o < n_outputs; ++o) intercept[o] += row_slope[o];
    const T weight = ws.weight[b], share = weight / n_rows;
    for (int f = 0; f < n_features; ++f) {
      const int64_t at = int64_t(f) * n_rows + b, own = int64_t(b) * n_logits + f * width;
      T* slope = ws.contribution + at * n_outputs;
      begin_slope(row_slope, output * weight, mean_slope ? ws.context + at * n_outputs : nullptr, n_outputs, slope);
      if (!has_gate) continue;
      const Ends<T> ends = ends_of(ws, at);
      const T *lower = experts + int64_t(ends.lower) * n_values, *upper = experts + int64_t(ends.upper) * n_values;
      T *routing = ws.routing + own, *to = ws.slope + own;
      const T* kept = all_kept ? all_kept + own : nullptr;
      Vectors<V, N, T> part(scratch.used);
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i)
        part.set(i, mean_slope ? share * load<V>(mean_slope + f * width + i * lanes) : V{});
      for (int o = 0; o < n_outputs; ++o)
#pragma GCC unroll 4
        for (int i = 0; i < n; ++i) {
          const int e = o * width + i * lanes;
          const V between = ends.of_lower * load<V>(lower + e) + ends.of_upper * load<V>(upper + e);
          part.set(i, part.get(i) + slope[o] * between);
        }
      V total{};
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        V used = load<V>(routing + i * lanes);
        if (kept) used *= load<V>(kept + i * lanes);
        part.set(i, part.get(i) * used);
        total += part.get(i);
      }
      const V sum = sum_groups<lanes>(total);
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        const V own_routing = load<V>(routing + i * lanes);
        store(to + i * lanes, V(per_degree * (part.get(i) - own_routing * sum)));
        if (kept) store(routing + i * lanes, V(own_routing * load<V>(kept + i * lanes)));
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
  const int width = size.experts_pad, n = N ? N : width / lanes, first = model.first_slot[feature];
  const int n_rows = batch.size, n_outputs = size.outputs, n_values = size.values;
  const T* weights = model.has_gate ? ws.routing : ws.kept;
  const int64_t row = weights ? size.logits : 0;
  weights = weights ? weights + feature * width : model.expert_mask;
  const T* slopes = ws.contribution + int64_t(feature) * n_rows * n_outputs;
  for (int b = 0; b < n_rows; ++b) {
    const Ends<T> ends = ends_of(ws, int64_t(feature) * n_rows + b);
    const T* used = weights + b * row;
    T *lower = to + int64_t(ends.lower - first) * n_values, *upper = to + int64_t(ends.upper - first) * n_values;
    const bool is_between = ends.upper != ends.lower;
    for (int o = 0; o < n_outputs; ++o) {
      const T slope = slopes[int64_t(b) * n_outputs + o];
#pragma GCC unroll 4
      for (int i = 0; i < n; ++i) {
        const int e = o * width + i * lanes;
        const V own = slope * load<V>(used + i * lanes);
        store(lower + e, V(load<V>(lower + e) + ends.of_lower * own));
        if (is_between) store(upper + e, V(load<V>(upper + e) + ends.of_upper * own));
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
