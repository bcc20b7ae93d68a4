// Forms: raw experts and gate terms of a feature become what a fit promises; and the way back. What each form means is
// written in nae/network/forms.py. A form works on columns of a table of slots, so a table is (n, columns).
//
// Corner. p(d) = (d + sqrt(d d + e e)) / 2 is positive, and p'(d) = (1 + d / sqrt(d d + e e)) / 2.
//
// Rise. With the middle slot m kept, y_s+1 - y_s = w p(w (x_s+1 - x_s)), w = 1 or -1. Let g_s be the gradient of step s:
// the sum of dy beyond the step (with a minus for steps before m, where later slots are fixed) times p'. Then
//     dx_s = g_s-1 - g_s,   and dx_m gets the sum of all dy besides.
//
// Bend. Steps x_i+1 - x_i become width_i slope_i with slopes that ascend: those nearest to the steps, found by pooling
// neighbours whose slopes would descend. The mean of the curve stays. Gradients pass as they are: what was taken from
// the raw curve is taken for a constant. Otherwise neighbours that were pooled once would never part again.
//
// Cap. y = c u / sqrt(1 + u u) with u = x / max(1, c): dx = dy c / max(1, c) (1 - (y / c)^2)^(3/2).
//
// Order. Sorted values are looked up by where they came from, and gradients go back there.
//
// Matrix. Terms that leaders feed rise, and the rows of the matrix that turn them into logits rise with the experts.
//
// Lead. Differences along the experts rise, and are added up again. The first expert's logit rises with them: what is
// common to all experts of a feature changes no weight.
#pragma once
#include <cmath>
#include <type_traits>

#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

constexpr int kColumns = 16;  // that are worked on at once

template <class T>
NAE_INLINE T corner(T d, T soft) {
  return (d + std::sqrt(d * d + soft * soft)) / 2;
}

template <class T>
NAE_INLINE T corner_slope(T d, T soft) {
  return (1 + d / std::sqrt(d * d + soft * soft)) / 2;
}

template <class T>
T softness(const Model<T>& model, const Form& form) {
  return model.sharpness / (form.n_ordered > 2 ? form.n_ordered - 1 : 1);
}

// Calls work(first column, number of columns) for all columns in turn; the number is a constant where it can be.
template <class Work>
NAE_INLINE void by_columns(int n, Work work) {
  int from = 0;
  for (; from + kColumns <= n; from += kColumns) work(from, std::integral_constant<int, kColumns>());
  if (from < n) work(from, n - from);
}

// `raw` has the raw numbers, and afterwards the slope p' of the step from every slot to the next.
template <class T>
NAE_INLINE void rise(T* raw, T* to, int n, int64_t stride, int n_columns, T way, T soft) {
  const int middle = n / 2;
  by_columns(n_columns, [&](int from, auto width) {
    T last[kColumns], sum[kColumns];
    const auto begin = [&] {
      for (int i = 0; i < width; ++i) last[i] = to[middle * stride + from + i], sum[i] = last[i];
    };
    const auto step = [&](T d, T& slope) {
      const T size = std::sqrt(d * d + soft * soft), found = (d + size) / 2;
      slope = found / size;
      return found;
    };
    begin();
    for (int s = middle; s + 1 < n; ++s)
      for (int i = 0; i < width; ++i) {
        const int64_t at = s * stride + from + i;
        const T next = raw[at + stride];
        sum[i] += way * step(way * (next - last[i]), raw[at]);
        last[i] = next;
        to[at + stride] = sum[i];
      }
    begin();
    for (int s = middle - 1; s >= 0; --s)
      for (int i = 0; i < width; ++i) {
        const int64_t at = s * stride + from + i;
        const T own = raw[at];
        sum[i] -= way * step(way * (last[i] - own), raw[at]);
        last[i] = own;
        to[at] = sum[i];
      }
  });
}

// The gradient `d` becomes that of the raw numbers; `slope` is what `rise` left.
template <class T>
NAE_INLINE void back_rise(const T* slope, T* d, int n, int64_t stride, int n_columns) {
  const int middle = n / 2;
  by_columns(n_columns, [&](int from, auto width) {
    T sum[kColumns] = {}, before[kColumns] = {}, kept[kColumns] = {};
    for (int s = n - 2; s >= middle; --s)
      for (int i = 0; i < width; ++i) {
        const int64_t at = s * stride + from + i;
        sum[i] += d[at + stride];
        const T found = sum[i] * slope[at];
        d[at + stride] = found - before[i];
        before[i] = found;
      }
    for (int i = 0; i < width; ++i) kept[i] = d[middle * stride + from + i] + sum[i] - before[i];
    for (int i = 0; i < width; ++i) sum[i] = before[i] = 0;
    for (int s = 0; s < middle; ++s)
      for (int i = 0; i < width; ++i) {
        const int64_t at = s * stride + from + i;
        sum[i] -= d[at];
        const T found = sum[i] * slope[at];
        d[at] = before[i] - found;
        before[i] = found;
      }
    for (int i = 0; i < width; ++i) d[middle * stride + from + i] = kept[i] - sum[i] + before[i];
  });
}

// Pools the steps of one curve, a column, until slopes ascend; returns the number of pools.
template <class T>
NAE_INLINE int pool_steps(const Form& form, const double* place, const T* raw, int64_t stride, Pool* pools) {
  int n = 0;
  for (int i = 0; i + 1 < form.n_ordered; ++i) {
    const double width = place[i + 1] - place[i];
    const double step = form.bend * (double(raw[(i + 1) * stride]) - double(raw[i * stride]));
    Pool own{step * width, width * width, 1};
    for (; n > 0 && pools[n - 1].product * own.square >= own.product * pools[n - 1].square; --n) {
      own.product += pools[n - 1].product;
      own.square += pools[n - 1].square;
      own.count += pools[n - 1].count;
    }
    pools[n++] = own;
  }
  return n;
}

template <class T>
void bend(const Form& form, const double* place, const T* raw, T* to, int64_t stride, int columns, Pool* pools) {
  for (int c = 0; c < columns; ++c) {
    const int n_pools = pool_steps(form, place, raw + c, stride, pools);
    double bent = 0, excess = -double(raw[c]);
    to[c] = 0;
    for (int pool = 0, i = 0; pool < n_pools; ++pool) {
      double slope = pools[pool].square > 0 ? form.bend * pools[pool].product / pools[pool].square : 0;
      if (form.rise * slope < 0) slope = 0;
      for (const int end = i + pools[pool].count; i < end; ++i) {
        bent += slope * (place[i + 1] - place[i]);
        to[(i + 1) * stride + c] = T(bent);
        excess += bent - double(raw[(i + 1) * stride + c]);
      }
    }
    for (int s = 0; s < form.n_ordered; ++s) to[s * stride + c] -= T(excess / form.n_ordered);
  }
}

// All experts of an output become their mean; of gradients, this is the way back, too.
template <class T>
NAE_INLINE void average(const Sizes& size, T* table, int n) {
  for (int64_t from = 0; from < int64_t(n) * size.values; from += size.experts_pad) {
    T sum = 0;
    for (int k = 0; k < size.experts; ++k) sum += table[from + k];
    for (int k = 0; k < size.experts; ++k) table[from + k] = sum / size.experts;
  }
}

template <class T>
NAE_INLINE void put_under_cap(const Sizes& size, const T* caps, T* table, int n) {
  for (int s = 0; s < n; ++s)
    for (int o = 0; o < size.outputs; ++o) {
      T* own = table + int64_t(s) * size.values + o * size.experts_pad;
      const T cap = caps[o], unit = cap > 1 ? cap : T(1);
      for (int k = 0; k < size.experts; ++k) {
        const T share = own[k] / unit;
        own[k] = cap * share / std::sqrt(1 + share * share);
      }
    }
}

template <class T>
NAE_INLINE void back_cap(const Sizes& size, const T* caps, const T* table, T* d, int n) {
  for (int s = 0; s < n; ++s)
    for (int o = 0; o < size.outputs; ++o) {
      const int64_t from = int64_t(s) * size.values + o * size.experts_pad;
      const T cap = caps[o], factor = cap > 1 ? T(1) : cap;
      for (int k = 0; k < size.experts; ++k) {
        const T share = table[from + k] / cap, rest = share * share < 1 ? 1 - share * share : T(0);
        d[from + k] *= factor * rest * std::sqrt(rest);
      }
    }
}

// Sorts `n` numbers that lie `stride` apart, and takes along where they came from.
template <class T>
NAE_INLINE void sort_along(T* values, int16_t* source, int n, int stride) {
  for (int i = 1; i < n; ++i) {
    const T value = values[i * stride];
    const int16_t from = source[i * stride];
    int j = i - 1;
    for (; j >= 0 && values[j * stride] > value; --j) {
      values[(j + 1) * stride] = values[j * stride];
      source[(j + 1) * stride] = source[j * stride];
    }
    values[(j + 1) * stride] = value;
    source[(j + 1) * stride] = from;
  }
}

// Slots in turn begin with the order of the one before: neighbours hardly differ.
template <class T>
NAE_INLINE void sort_slots(const Model<T>& model, const Form& form, T* table, int16_t* sources, T* before, int n) {
  const Sizes& size = model.size;
  for (int s = 0; s < n; ++s) {
    T* own = table + int64_t(s) * size.values;
    int16_t* source = sources + int64_t(s) * size.values;
    const int16_t* known = source - size.values;
    for (int i = 0; i < size.values; ++i) source[i] = int16_t(i);
    if (s > 0 && !model.sorts_outputs) {
      for (int i = 0; i < size.values; ++i) before[i] = own[known[i]];
      for (int i = 0; i < size.values; ++i) own[i] = before[i], source[i] = known[i];
    }
    if (model.sorts_outputs)
      for (int k = 0; k < size.experts; ++k) sort_along(own + k, source + k, size.outputs, size.experts_pad);
    if (form.is_sorted)
      for (int o = 0; o < size.outputs; ++o)
        sort_along(own + o * size.experts_pad, source + o * size.experts_pad, size.experts, 1);
  }
}

template <class T>
NAE_INLINE void back_sort(const Sizes& size, const int16_t* sources, T* d, T* before, int n) {
  for (int s = 0; s < n; ++s) {
    T* own = d + int64_t(s) * size.values;
    const int16_t* source = sources + int64_t(s) * size.values;
    for (int i = 0; i < size.values; ++i) before[i] = own[i];
    for (int i = 0; i < size.values; ++i) own[source[i]] = before[i];
  }
}

// Of a gate whose terms are logits: how many features a feature has terms for.
inline int n_targets(const Sizes& size) { return size.terms / size.experts_pad; }

template <class T>
NAE_INLINE void lead(const Model<T>& model, const Form& form, T* terms, T* slopes, int n) {
  const Sizes& size = model.size;
  const int64_t width = size.terms_pad;
  const auto by_target = [&](auto change) {
    for (int64_t s = 0; s < n; ++s)
      for (int j = 0; j < n_targets(size); ++j) change(terms + s * width + j * size.experts_pad);
  };
  by_target([&](T* own) {
    for (int k = size.experts - 1; k > 0; --k) own[k] -= own[k - 1];
  });
  for (int64_t i = 0; i < n * width; ++i) slopes[i] = terms[i];
  if (form.n_ordered > 1)
    rise(slopes, terms, form.n_ordered, width, int(width), T(form.rise), softness(model, form));
  by_target([&](T* own) {
    for (int k = 1; k < size.experts; ++k) own[k] += own[k - 1];
    for (int k = size.experts; k < size.experts_pad; ++k) own[k] = 0;
  });
}

template <class T>
NAE_INLINE void back_lead(const Model<T>& model, const Form& form, const T* slopes, T* d, int n) {
  const Sizes& size = model.size;
  const int64_t width = size.terms_pad;
  const auto by_target = [&](auto change) {
    for (int64_t s = 0; s < n; ++s)
      for (int j = 0; j < n_targets(size); ++j) change(d + s * width + j * size.experts_pad);
  };
  by_target([&](T* own) {
    for (int k = size.experts - 2; k >= 0; --k) own[k] += own[k + 1];
  });
  if (form.n_ordered > 1) back_rise(slopes, d, form.n_ordered, width, int(width));
  by_target([&](T* own) {
    for (int k = 0; k + 1 < size.experts; ++k) own[k] -= own[k + 1];
  });
}

// With a matrix: a feature that leads feeds the first terms, which rise, and no others.
template <class T>
NAE_INLINE void feed(const Model<T>& model, const Form& form, T* terms, T* slopes, int n) {
  const int width = model.size.terms_pad, n_fed = model.n_leading;
  for (int64_t i = 0; i < int64_t(n) * width; ++i) slopes[i] = terms[i];
  if (form.n_ordered > 1) rise(slopes, terms, form.n_ordered, width, n_fed, T(form.rise), softness(model, form));
  for (int s = 0; s < n; ++s)
    for (int i = n_fed; i < width; ++i) terms[int64_t(s) * width + i] = 0;
}

template <class T>
NAE_INLINE void back_feed(const Model<T>& model, const Form& form, const T* slopes, T* d, int n) {
  const int width = model.size.terms_pad, n_fed = model.n_leading;
  for (int s = 0; s < n; ++s)
    for (int i = n_fed; i < width; ++i) d[int64_t(s) * width + i] = 0;
  if (form.n_ordered > 1) back_rise(slopes, d, form.n_ordered, width, n_fed);
}

// Some columns of the matrix: rows of terms that are fed by leaders ascend with the experts.
template <class T>
void shape_mix(const Model<T>& model, const T* raw, T* to, int from, int n) {
  const Sizes& size = model.size;
  const T soft = model.sharpness / (size.experts > 2 ? size.experts - 1 : 1);
  for (int i = 0; i < size.terms; ++i) {
    const int64_t at = int64_t(i) * size.logits + from;
    for (int c = 0; c < n; ++c) to[at + c] = raw[at + c];
    for (int c = 0; i < model.n_leading && c < n; c += size.experts_pad) {
      const bool is_bent = model.form[(from + c) / size.experts_pad].bend != 0;
      for (int k = 0; is_bent && k < size.experts; ++k) to[at + c + k] = 0;
      for (int k = 1; !is_bent && k < size.experts; ++k)
        to[at + c + k] = to[at + c + k - 1] + corner(raw[at + c + k] - raw[at + c + k - 1], soft);
    }
  }
}

// The gradients `d`, (terms, n), become those of the raw matrix.
template <class T>
void back_shape_mix(const Model<T>& model, const T* raw, T* d, int from, int n) {
  const Sizes& size = model.size;
  const T soft = model.sharpness / (size.experts > 2 ? size.experts - 1 : 1);
  for (int i = 0; i < model.n_leading; ++i)
    for (int c = 0; c < n; c += size.experts_pad) {
      const T* own = raw + int64_t(i) * size.logits + from + c;
      T* found = d + int64_t(i) * n + c;
      const bool is_bent = model.form[(from + c) / size.experts_pad].bend != 0;
      for (int k = 0; is_bent && k < size.experts; ++k) found[k] = 0;
      if (is_bent) continue;
      for (int k = size.experts - 2; k >= 0; --k) found[k] += found[k + 1];
      T last = 0;
      for (int k = size.experts - 1; k > 0; --k) {
        const T slope = found[k] * corner_slope(own[k] - own[k - 1], soft);
        found[k] = slope - last;
        last = slope;
      }
      found[0] -= last;
    }
}

// Terms, or their gradients, are zero where the feature may not change another.
template <class T>
NAE_INLINE void mask_terms(const Model<T>& model, int member, int feature, T* terms, int n) {
  const Sizes& size = model.size;
  const uint8_t* allows = model.allows + (int64_t(member) * size.features + feature) * size.features;
  const int n_others = model.is_mixed ? 1 : n_targets(size), width = model.is_mixed ? size.terms_pad : size.experts_pad;
  for (int j = 0; j < n_others; ++j) {
    if (allows[model.is_summed ? j : feature]) continue;
    for (int s = 0; s < n; ++s) {
      T* own = terms + int64_t(s) * size.terms_pad + j * size.experts_pad;
      for (int i = 0; i < width; ++i) own[i] = 0;
    }
  }
}

template <class T>
void shape_slots(const Model<T>& model, int member, Workspace<T>& ws, Scratch<T>& scratch, int feature) {
  const Sizes& size = model.size;
  const Form& form = model.form[feature];
  const int first = model.first_slot[feature], n = model.n_slots[feature];
  const int64_t at = int64_t(first) * size.values;
  T *experts = ws.experts + at, *raw = ws.raw_experts + at;
  if (form.has_shape()) {
    for (int64_t i = 0; i < int64_t(n) * size.values; ++i) raw[i] = experts[i];
    for (int o = 0; o < size.outputs; ++o) {
      const int from = o * size.experts_pad;
      if (form.bend)
        bend(form, model.place + first, raw + from, experts + from, size.values, size.experts, scratch.pools);
      else
        rise(raw + from, experts + from, form.n_ordered, size.values, size.experts, T(form.rise),
             softness(model, form));
    }
  }
  if (form.is_single) average(size, experts, n);
  if (form.has_cap) put_under_cap(size, model.cap + feature * size.outputs, experts, n);
  if (form.is_sorted || model.sorts_outputs) sort_slots(model, form, experts, ws.source + at, scratch.values, n);
  if (!model.has_gate) return;
  const int64_t terms_at = int64_t(first) * size.terms_pad;
  if (form.leads)
    (model.n_leading ? feed<T> : lead<T>)(model, form, ws.terms + terms_at, ws.raw_terms + terms_at, n);
  if (model.allows) mask_terms(model, member, feature, ws.terms + terms_at, n);
}

// Turns the gradients in scratch into those of the raw experts and terms.
template <class T>
void back_shape(const Model<T>& model, int member, const Workspace<T>& ws, Scratch<T>& scratch, int feature) {
  const Sizes& size = model.size;
  const Form& form = model.form[feature];
  const int first = model.first_slot[feature], n = model.n_slots[feature];
  const int64_t at = int64_t(first) * size.values;
  T* d = scratch.d_experts;
  if (form.has_cap) back_cap(size, model.cap + feature * size.outputs, ws.experts + at, d, n);
  if (form.is_sorted || model.sorts_outputs) back_sort(size, ws.source + at, d, scratch.values, n);
  if (form.is_single) average(size, d, n);
  if (form.has_shape() && !form.bend)
    for (int o = 0; o < size.outputs; ++o) {
      const int from = o * size.experts_pad;
      back_rise(ws.raw_experts + at + from, d + from, form.n_ordered, size.values, size.experts);
    }
  if (!model.has_gate) return;
  if (model.allows) mask_terms(model, member, feature, scratch.d_terms, n);
  const T* slopes = ws.raw_terms + int64_t(first) * size.terms_pad;
  if (form.leads) (model.n_leading ? back_feed<T> : back_lead<T>)(model, form, slopes, scratch.d_terms, n);
}

}  // namespace nae::NAE_SET
