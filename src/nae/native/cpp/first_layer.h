// The first linear map, on inputs that change little from one slot to the next.
//
// A number's slot is encoded by its position and by ramps, most of which are all zero or all one there. Only a few
// inputs differ between neighbours, so the sums are carried on from slot to slot:
//     z[s] = z[s - 1] + sum over j of (x[s, j] - x[s - 1, j]) w[j]
// A slot is fresh if writing its own inputs down takes no more than that; it begins at the bias again. This is exact
// for any inputs. It is the product L D W, where L adds up and D holds the differences; the gradient of W is
// transpose(D) transpose(L) dz, and transpose(L) adds up from the last slot to the first.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

// Adds the entries of a slot to `sum` (hidden_pad,).
template <class T>
NAE_INLINE void add_entries(const Model<T>& model, int slot, const T* weight, T* sum) {
  using V = Narrow<T>;
  const int width = model.size.hidden_pad;
  for (int e = model.entry_start[slot]; e < model.entry_start[slot + 1]; ++e) {
    const T value = model.entry_value[e];
    const T* own = weight + int64_t(model.entry_column[e]) * width;
    for (int i = 0; i < width; i += kLanes<V>) store(sum + i, load<V>(sum + i) + value * load<V>(own + i));
  }
}

// Writes the gradient of the weights (n_columns, hidden_pad) for gradients `slope` (n_slots, hidden_pad), which are
// overwritten by their sums from the last slot of a run to the first.
template <class T>
void back_first_layer(const Model<T>& model, int first, int n_slots, int n_columns, T* slope, T* d_weight) {
  using V = Narrow<T>;
  const int width = model.size.hidden_pad;
  for (int64_t i = 0; i < int64_t(n_columns) * width; i += kLanes<V>) store(d_weight + i, V{});
  for (int s = n_slots - 1; s >= 0; --s) {
    T* own = slope + int64_t(s) * width;
    if (s + 1 < n_slots && !model.is_fresh[first + s + 1])
      for (int i = 0; i < width; i += kLanes<V>) store(own + i, load<V>(own + i) + load<V>(own + width + i));
    for (int e = model.entry_start[first + s]; e < model.entry_start[first + s + 1]; ++e) {
      const T value = model.entry_value[e];
      T* to = d_weight + int64_t(model.entry_column[e]) * width;
      for (int i = 0; i < width; i += kLanes<V>) store(to + i, load<V>(to + i) + value * load<V>(own + i));
    }
  }
}

}  // namespace nae::NAE_SET
