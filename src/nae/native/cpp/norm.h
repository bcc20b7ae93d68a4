// Layer norm with a scale and a shift, then a ReLU; row by row.
//
// With x = (z - mean z) / sd z, over the H units of a row, and y = relu(x a + b): let g = dy [y > 0]. Then
//     da = sum over rows of g x,   db = sum over rows of g,
//     dz = (u - mean u - x mean(u x)) / sd z   with u = g a.
// The means are over the units; those of dz come from the mean and the deviation, which depend on every unit. Units
// that pad a row have a mask of zero, and so have scale and shift there.
#pragma once
#include "model.h"
#include "vector.h"

namespace nae::NAE_SET {

constexpr double kNormEpsilon = 1e-5;

// N vectors in a row; 0 if their number is only known while running.
template <class V, int N, class T>
NAE_INLINE void norm_row(int width, T per_unit, const T* mask, const T* z, const T* scale, const T* shift, T* normal,
                         T* deviation, T* out) {
  constexpr int lanes = kLanes<V>;
  const int n = N ? N * lanes : width;
  V total{};
#pragma GCC unroll 8
  for (int i = 0; i < n; i += lanes) total += load<V>(z + i);
  const T mean = sum_of<T>(total) * per_unit;
  V squares{};
#pragma GCC unroll 8
  for (int i = 0; i < n; i += lanes) {
    const V apart = (load<V>(z + i) - mean) * load<V>(mask + i);
    squares += apart * apart;
  }
  const T inverse = T(1) / std::sqrt(sum_of<T>(squares) * per_unit + T(kNormEpsilon));
  *deviation = inverse;
#pragma GCC unroll 8
  for (int i = 0; i < n; i += lanes) {
    const V x = (load<V>(z + i) - mean) * load<V>(mask + i) * inverse;
    store(normal + i, x);
    store(out + i, positive(V(x * load<V>(scale + i) + load<V>(shift + i))));
  }
}

template <class V, int N, class T>
NAE_INLINE void back_norm_rows(int n_rows, int width, T per_unit, const T* mask, const T* scale, const T* shift,
                               const T* normal, const T* deviation, T* slope, T* d_bias) {
  constexpr int lanes = kLanes<V>;
  const int n = N ? N * lanes : width;
  T *d_scale = d_bias + width, *d_shift = d_scale + width;
  for (int i = 0; i < 3 * n; i += lanes) store(d_bias + i, V{});
  for (int r = 0; r < n_rows; ++r) {
    T* own = slope + int64_t(r) * width;
    const T* x = normal + int64_t(r) * width;
    V sum{}, sum_x{};
#pragma GCC unroll 8
    for (int i = 0; i < n; i += lanes) {
      const V xi = load<V>(x + i), a = load<V>(scale + i);
      const V g = xi * a + load<V>(shift + i) > 0 ? load<V>(own + i) : V{};
      store(d_scale + i, load<V>(d_scale + i) + g * xi);
      store(d_shift + i, load<V>(d_shift + i) + g);
      const V u = g * a;
      store(own + i, u);
      sum += u;
      sum_x += u * xi;
    }
    const T mean = sum_of<T>(sum) * per_unit, mean_x = sum_of<T>(sum_x) * per_unit;
#pragma GCC unroll 8
    for (int i = 0; i < n; i += lanes) {
      const V dz = (load<V>(own + i) - mean - load<V>(x + i) * mean_x) * load<V>(mask + i) * deviation[r];
      store(own + i, dz);
      store(d_bias + i, load<V>(d_bias + i) + dz);
    }
  }
}

// Calls `body` with the vector type and the number of vectors of a row.
template <class T, class Body>
NAE_INLINE void with_vectors(int width, Body body) {
  constexpr int wide = kLanes<Wide<T>>;
  if (width == wide) return body(Wide<T>{}, std::integral_constant<int, 1>{});
  if (width == 2 * wide) return body(Wide<T>{}, std::integral_constant<int, 2>{});
  if (width == 4 * wide) return body(Wide<T>{}, std::integral_constant<int, 4>{});
  if (width == 8 * wide) return body(Wide<T>{}, std::integral_constant<int, 8>{});
  return body(Narrow<T>{}, std::integral_constant<int, 0>{});
}

template <class T>
void norm_rows(const Model<T>& model, int n_rows, const T* z, const T* scale, const T* shift, T* normal,
               T* deviation, T* out) {
  const int width = model.size.hidden_pad;
  const T per_unit = T(1) / model.size.hidden;
  with_vectors<T>(width, [&](auto kind, auto n) {
    for (int r = 0; r < n_rows; ++r) {
      const int64_t at = int64_t(r) * width;
      norm_row<decltype(kind), n()>(width, per_unit, model.hidden_mask, z + at, scale, shift, normal + at,
                                    deviation + r, out + at);
    }
  });
}

// Turns gradients of the outputs, `slope`, into those of z; writes the gradients of bias, scale and shift.
template <class T>
void back_norm(const Model<T>& model, int n_rows, const T* scale, const T* shift, const T* normal,
               const T* deviation, T* slope, T* d_bias) {
  const int width = model.size.hidden_pad;
  const T per_unit = T(1) / model.size.hidden;
  with_vectors<T>(width, [&](auto kind, auto n) {
    back_norm_rows<decltype(kind), n()>(n_rows, width, per_unit, model.hidden_mask, scale, shift, normal, deviation,
                                        slope, d_bias);
  });
}

// The outputs once more, from what was kept of them.
template <class T>
void outputs_again(const Model<T>& model, int n_rows, const T* normal, const T* scale, const T* shift, T* out) {
  using V = Narrow<T>;
  const int width = model.size.hidden_pad;
  for (int i = 0; i < width; i += kLanes<V>) {
    const V a = load<V>(scale + i), b = load<V>(shift + i);
    for (int r = 0; r < n_rows; ++r) {
      const int64_t at = int64_t(r) * width + i;
      store(out + at, positive(V(load<V>(normal + at) * a + b)));
    }
  }
}

}  // namespace nae::NAE_SET
