// Products of small matrices: C (m, n) from A (m, k) and B (k, n), where n is a whole number of units.
//
// A tile of C stays in registers for the whole sum over k; for each k, a row of B is loaded once and multiplied by one
// number of every row of A. Rows of A may lie apart by `row` and its columns by `column` numbers, so that a product
// with A exchanged costs nothing.
#pragma once
#include "vector.h"

namespace nae::NAE_SET {

enum class Begin { kZero, kSum, kBias };  // what the sum begins with: nothing, C as it is, or a row for all rows

template <class T>
struct Left {
  const T* at;
  int64_t row, column;
};

constexpr int kTileRows = NAE_BYTES == 64 ? 8 : NAE_BYTES == 32 ? 6 : 4;

template <class V, int R, int N, Begin B, class T>
NAE_INLINE void tile(int k, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row, const T* bias) {
  constexpr int lanes = kLanes<V>;
  V sum[R][N];
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) {
      if constexpr (B == Begin::kZero) sum[r][n] = V{};
      if constexpr (B == Begin::kSum) sum[r][n] = load<V>(c + r * c_row + n * lanes);
      if constexpr (B == Begin::kBias) sum[r][n] = load<V>(bias + n * lanes);
    }
  for (int i = 0; i < k; ++i) {
    V own[N];
    for (int n = 0; n < N; ++n) own[n] = load<V>(b + i * b_row + n * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const T factor = a.at[r * a.row + i * a.column];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) sum[r][n] += factor * own[n];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) store(c + r * c_row + n * lanes, sum[r][n]);
}

template <class V, int N, Begin B, class T>
NAE_INLINE void panel(int m, int k, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row, const T* bias) {
  int r = 0;
  for (; r + kTileRows <= m; r += kTileRows)
    tile<V, kTileRows, N, B>(k, Left<T>{a.at + r * a.row, a.row, a.column}, b, b_row, c + r * c_row, c_row, bias);
  if constexpr (kTileRows > 4)
    for (; r + 4 <= m; r += 4)
      tile<V, 4, N, B>(k, Left<T>{a.at + r * a.row, a.row, a.column}, b, b_row, c + r * c_row, c_row, bias);
  for (; r < m; ++r)
    tile<V, 1, N, B>(k, Left<T>{a.at + r * a.row, a.row, a.column}, b, b_row, c + r * c_row, c_row, bias);
}

template <Begin B, class T>
void multiply(int m, int n, int k, Left<T> a, const T* b, int64_t b_row, T* c, int64_t c_row,
              const T* bias = nullptr) {
  constexpr int wide = kLanes<Wide<T>>, narrow = kLanes<Narrow<T>>;
  int at = 0;
  const auto own_bias = [&] { return B == Begin::kBias ? bias + at : nullptr; };
  for (; at + 2 * wide <= n; at += 2 * wide) panel<Wide<T>, 2, B>(m, k, a, b + at, b_row, c + at, c_row, own_bias());
  for (; at + wide <= n; at += wide) panel<Wide<T>, 1, B>(m, k, a, b + at, b_row, c + at, c_row, own_bias());
  if constexpr (narrow < wide)
    for (; at < n; at += narrow) panel<Narrow<T>, 1, B>(m, k, a, b + at, b_row, c + at, c_row, own_bias());
}

// Writes the (m, n) numbers of `from`, whose rows lie `from_row` apart, to (n, m).
template <class T>
void turn(int m, int n, const T* from, int64_t from_row, T* to, int64_t to_row) {
  constexpr int side = 8;
  for (int i0 = 0; i0 < m; i0 += side)
    for (int j0 = 0; j0 < n; j0 += side) {
      const int i1 = i0 + side < m ? i0 + side : m, j1 = j0 + side < n ? j0 + side : n;
      for (int j = j0; j < j1; ++j)
        for (int i = i0; i < i1; ++i) to[j * to_row + i] = from[i * from_row + j];
    }
}

// Adds a matrix's rows up into one: (m, n) -> (n,).
template <class T>
void sum_rows(int m, int n, const T* from, int64_t from_row, T* to) {
  using V = Narrow<T>;
  constexpr int lanes = kLanes<V>;
  for (int at = 0; at < n; at += lanes) {
    V sum{};
    for (int i = 0; i < m; ++i) sum += load<V>(from + i * from_row + at);
    store(to + at, sum);
  }
}

}  // namespace nae::NAE_SET
