// The rows of a batch, a block at a time: where they lie, their logits, and back to the gradients of both.
//
// A row at fraction q between slots s and s + 1 of a feature has the term t = (1 - q) T_s + q T_(s + 1). So a gradient d
// of t adds (1 - q) d to that of T_s and q d to that of T_(s + 1). The terms of all features and the bias make the sum
// a, and the logits are l = a, or l = h M + m with h = a or h = relu(a). Backwards dh = dl M', dM = h' dl, dm = the sum
// of dl's rows, and da = dh, or dh where a > 0. The bias of the sum gets the sum of da's rows.
#pragma once
#include "matmul.h"
#include "random.h"
#include "vector.h"

namespace nae::NAE_SET {

// A row lies between two slots of every feature: the upper one is the next, or the same where the fraction is zero.
template <class T>
struct Ends {
  int lower, upper;
  T of_lower, of_upper;  // their shares
};

template <class T>
NAE_INLINE Ends<T> ends_of(const Workspace<T>& ws, int64_t at) {
  const T fraction = ws.fraction[at];
  return {ws.slot[at], ws.slot[at] + (fraction > 0), 1 - fraction, fraction};
}

struct Span {
  int first, end;
};

template <class T>
NAE_INLINE Span rows_of(const Batch<T>& batch, int block) {
  const int first = block * kBlockRows, end = first + kBlockRows;
  return {first, end < batch.size ? end : batch.size};
}

// Copies the rows of a block from the table, feature after feature.
template <class T>
void gather(const Model<T>& model, const Batch<T>& batch, int member, Workspace<T>& ws, int block) {
  const Rows<T>& rows = *batch.rows;
  const int n_features = model.size.features, n_outputs = model.size.outputs;
  const Span span = rows_of(batch, block);
  for (int b = span.first; b < span.end; ++b) {
    const int64_t row = batch.order[b];
    for (int f = 0; f < n_features; ++f) {
      ws.slot[int64_t(f) * batch.size + b] = rows.slot[row * n_features + f];
      ws.fraction[int64_t(f) * batch.size + b] = rows.fraction[row * n_features + f];
    }
    ws.weight[b] = rows.weight[row];
    for (int o = 0; o < n_outputs; ++o) {
      ws.base[int64_t(b) * n_outputs + o] = rows.base ? rows.base[row * n_outputs + o] : T(0);
      if (rows.target) ws.target[int64_t(b) * n_outputs + o] = rows.target[row * n_outputs + o];
    }
    if (rows.label) ws.label[b] = rows.label[row];
    ws.is_out[b] = rows.fold && rows.fold[row] == model.own_fold[member];
  }
}

// Adds up the terms of all features: (B, terms_pad), beginning with the gate's bias.
template <class T>
void sum_terms(const Model<T>& model, const Batch<T>& batch, const T* bias, Workspace<T>& ws, Scratch<T>& scratch,
               Span span, T* sums) {
  constexpr int most = 4;  // vectors that are summed side by side
  using V = Wide<T>;
  using N = Narrow<T>;
  const int n_features = model.size.features, width = model.size.terms_pad;
  for (int b = span.first; b < span.end; ++b) {
    T* shares = scratch.row;
    for (int f = 0; f < n_features; ++f) {
      const Ends<T> ends = ends_of(ws, int64_t(f) * batch.size + b);
      scratch.row_slots[2 * f] = ends.lower;
      scratch.row_slots[2 * f + 1] = ends.upper;
      shares[f] = ends.of_upper;
    }
    const auto add_up = [&](auto kind, auto count, int from) {
      using K = decltype(kind);
      K sum[count()];
      for (int i = 0; i < count(); ++i) sum[i] = load<K>(bias + from + i * kLanes<K>);
      for (int f = 0; f < n_features; ++f) {
        const T* lower = ws.terms + int64_t(scratch.row_slots[2 * f]) * width + from;
        const T* upper = ws.terms + int64_t(scratch.row_slots[2 * f + 1]) * width + from;
        const T of_upper = shares[f], of_lower = 1 - of_upper;
        for (int i = 0; i < count(); ++i)
          sum[i] += of_lower * load<K>(lower + i * kLanes<K>) + of_upper * load<K>(upper + i * kLanes<K>);
      }
      for (int i = 0; i < count(); ++i) store(sums + int64_t(b) * width + from + i * kLanes<K>, sum[i]);
    };
    int at = 0;
    for (; at + most * kLanes<V> <= width; at += most * kLanes<V>)
      add_up(V{}, std::integral_constant<int, most>{}, at);
    for (; at + kLanes<V> <= width; at += kLanes<V>) add_up(V{}, std::integral_constant<int, 1>{}, at);
    for (; at < width; at += kLanes<N>) add_up(N{}, std::integral_constant<int, 1>{}, at);
  }
}

// The terms of every feature, as its own logits.
template <class T>
void own_terms(const Model<T>& model, const Batch<T>& batch, const T* bias, Workspace<T>& ws, Span span) {
  using V = Narrow<T>;
  const int width = model.size.experts_pad;
  for (int b = span.first; b < span.end; ++b)
    for (int f = 0; f < model.size.features; ++f) {
      const Ends<T> ends = ends_of(ws, int64_t(f) * batch.size + b);
      const T *lower = ws.terms + int64_t(ends.lower) * width, *upper = ws.terms + int64_t(ends.upper) * width;
      T* to = ws.routing + int64_t(b) * model.size.logits + f * width;
      for (int i = 0; i < width; i += kLanes<V>)
        store(to + i, load<V>(bias + f * width + i) + ends.of_lower * load<V>(lower + i) +
                          ends.of_upper * load<V>(upper + i));
    }
}

// The linear map of a gate, (terms, logits).
template <class T>
const T* mix_of(const Model<T>& model, const T* weights, const Workspace<T>& ws) {
  return ws.mix ? ws.mix : weights + model.mix_at;
}

// Writes the logits of a block to ws.routing.
template <class T>
void gate_logits(const Model<T>& model, const Batch<T>& batch, const T* weights, Workspace<T>& ws,
                 Scratch<T>& scratch, Span span) {
  using V = Narrow<T>;
  const int logits = model.size.logits, width = model.size.terms_pad;
  const T* bias = weights + model.gate_bias_at;
  if (!model.is_summed) return own_terms(model, batch, bias, ws, span);
  if (!model.is_mixed) return sum_terms(model, batch, bias, ws, scratch, span, ws.routing);
  sum_terms(model, batch, bias, ws, scratch, span, ws.sum);
  T* sum = ws.sum + int64_t(span.first) * width;
  const int n = span.end - span.first;
  if (model.is_deep)
    for (int64_t i = 0; i < int64_t(n) * width; i += kLanes<V>) store(sum + i, positive(load<V>(sum + i)));
  multiply<Begin::kBias>(n, logits, model.size.terms, Left<T>{sum, width, 1}, mix_of(model, weights, ws), logits,
                         ws.routing + int64_t(span.first) * logits, logits, weights + model.mix_bias_at);
}

// Some columns of the linear map of a gate in their form, and as rows for the way back.
template <class T>
void turn_mix(const Model<T>& model, const T* weights, Workspace<T>& ws, int part) {
  const int logits = model.size.logits, width = model.size.terms_pad, columns = mix_columns(model.size);
  const int from = part * columns, n = from + columns < logits ? columns : logits - from;
  if (ws.mix) shape_mix(model, weights + model.mix_at, ws.mix, from, n);
  turn(model.size.terms, n, mix_of(model, weights, ws) + from, logits, ws.mix_turned + int64_t(from) * width, width);
}

// From gradients of the logits to those of the summed terms, where a linear map lies between.
template <class T>
void back_sums(const Model<T>& model, Workspace<T>& ws, Span span) {
  using V = Narrow<T>;
  const int logits = model.size.logits, width = model.size.terms_pad, n = span.end - span.first;
  T* slope = ws.sum_slope + int64_t(span.first) * width;
  multiply<Begin::kZero>(n, width, logits, Left<T>{ws.slope + int64_t(span.first) * logits, logits, 1}, ws.mix_turned,
                         width, slope, width);
  if (!model.is_deep) return;
  const T* sum = ws.sum + int64_t(span.first) * width;
  for (int64_t i = 0; i < int64_t(n) * width; i += kLanes<V>)
    store(slope + i, load<V>(sum + i) > 0 ? load<V>(slope + i) : V{});
}

// Adds every row's gradient to the two slots of a feature that it lies between.
template <class T>
void scatter_terms(const Model<T>& model, const Batch<T>& batch, const Workspace<T>& ws, Scratch<T>& scratch,
                   int feature) {
  const int width = model.size.terms_pad, first = model.first_slot[feature], n_rows = batch.size;
  T* to = scratch.d_terms;
  const int64_t n = int64_t(model.n_slots[feature] + 1) * width;
  for (int64_t i = 0; i < n; i += kLanes<Narrow<T>>) store(to + i, Narrow<T>{});
  const T* from = model.is_mixed ? ws.sum_slope : ws.slope + (model.is_summed ? 0 : feature * width);
  const int64_t row = model.is_mixed ? width : model.size.logits;
  const auto add = [&](auto kind, int at, int end) {
    using V = decltype(kind);
    for (int b = 0; b < n_rows; ++b) {
      const Ends<T> ends = ends_of(ws, int64_t(feature) * n_rows + b);
      const T* own = from + b * row;
      T *lower = to + int64_t(ends.lower - first) * width, *upper = to + int64_t(ends.upper - first) * width;
      for (int i = at; i < end; i += kLanes<V>) store(lower + i, V(load<V>(lower + i) + ends.of_lower * load<V>(own + i)));
      if (ends.upper == ends.lower) continue;
      for (int i = at; i < end; i += kLanes<V>) store(upper + i, V(load<V>(upper + i) + ends.of_upper * load<V>(own + i)));
    }
  };
  const int wide = width / kLanes<Wide<T>> * kLanes<Wide<T>>;
  if (wide) add(Wide<T>{}, 0, wide);
  if (wide < width) add(Narrow<T>{}, wide, width);
}

}  // namespace nae::NAE_SET
