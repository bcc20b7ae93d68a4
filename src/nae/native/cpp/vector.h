// Short vectors by the compiler's own extension, and what a kernel does with one: the same source for every
// instruction set. NAE_BYTES is the width of a register.
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>

#define NAE_INLINE inline __attribute__((always_inline))

namespace nae::NAE_SET {

template <class T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};

template <class T, int Bytes>
using Vector = typename VectorOf<T, Bytes / sizeof(T)>::type;

// The widest vector that divides a row of padded matrices, and the narrow one that always does.
template <class T>
using Wide = Vector<T, NAE_BYTES>;
template <class T>
using Narrow = Vector<T, NAE_BYTES < 32 ? NAE_BYTES : 32>;

template <class V>
constexpr int kLanes = sizeof(V) / sizeof(V{}[0]);

template <class V, class T>
NAE_INLINE V load(const T* from) {
  V found;
  __builtin_memcpy(&found, from, sizeof found);
  return found;
}

template <class V, class T>
NAE_INLINE void store(T* to, V value) {
  __builtin_memcpy(to, &value, sizeof value);
}

// Not-a-number stays what it is, so that a training that diverges is noticed.
template <class V>
NAE_INLINE V positive(V value) {
  return value < 0 ? V{} : value;
}

template <class V>
NAE_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}

template <class T, class V, int... I>
NAE_INLINE auto lower_half(V value, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(value, value, I...);
}

template <class T, class V, int... I>
NAE_INLINE auto upper_half(V value, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(value, value, (I + int(sizeof...(I)))...);
}

template <class T, class V>
NAE_INLINE T sum_of(V value) {
  constexpr int n = kLanes<V>;
  if constexpr (sizeof(V) > 16) {
    using Half = std::make_integer_sequence<int, n / 2>;
    return sum_of<T>(lower_half<T>(value, Half{}) + upper_half<T>(value, Half{}));
  } else if constexpr (n == 4) {
    return (value[0] + value[2]) + (value[1] + value[3]);
  } else {
    return value[0] + value[1];
  }
}

template <class T, class V>
NAE_INLINE T largest_of(V value) {
  constexpr int n = kLanes<V>;
  if constexpr (sizeof(V) > 16) {
    using Half = std::make_integer_sequence<int, n / 2>;
    return largest_of<T>(larger(lower_half<T>(value, Half{}), upper_half<T>(value, Half{})));
  } else if constexpr (n == 4) {
    const T a = value[0] > value[2] ? value[0] : value[2], b = value[1] > value[3] ? value[1] : value[3];
    return a > b ? a : b;
  } else {
    return value[0] > value[1] ? value[0] : value[1];
  }
}

template <int Step, class V, int... I>
NAE_INLINE V exchanged(V value, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(value, value, (I ^ Step)...);
}

// Sums, or largest numbers, of groups of `Group` neighbours: every lane holds that of its group.
template <int Group, class V>
NAE_INLINE V sum_groups(V value) {
  if constexpr (Group == 1) {
    return value;
  } else {
    constexpr int step = Group / 2;
    return sum_groups<step>(V(value + exchanged<step>(value, std::make_integer_sequence<int, kLanes<V>>{})));
  }
}

template <int Group, class V>
NAE_INLINE V largest_of_groups(V value) {
  if constexpr (Group == 1) {
    return value;
  } else {
    constexpr int step = Group / 2;
    return largest_of_groups<step>(larger(value, exchanged<step>(value, std::make_integer_sequence<int, kLanes<V>>{})));
  }
}

// exp(x) for x <= 0: x = n ln 2 + r with |r| <= ln 2 / 2; the series of exp(r), and n put into the exponent. Adding a
// large number leaves n in the last bits of the sum.
template <class T, class V>
NAE_INLINE V exp_of(V x) {
  constexpr bool is_double = sizeof(T) == 8;
  using Bits = std::conditional_t<is_double, uint64_t, uint32_t>;
  using BitVector = Vector<Bits, sizeof(V)>;
  constexpr T least = is_double ? T(-708) : T(-87);
  constexpr T magic = is_double ? T(6755399441055744.0) : T(12582912.0);
  constexpr T log2e = T(1.4426950408889634);
  constexpr T ln2_high = is_double ? T(0.693147180369123816490) : T(0.693359375);
  constexpr T ln2_low = is_double ? T(1.90821492927058770002e-10) : T(-2.12194440054690583e-4);
  constexpr int shift = is_double ? 52 : 23, bias = is_double ? 1023 : 127, degree = is_double ? 13 : 7;
  const V clipped = x < least ? V{} + least : x;
  const V shifted = clipped * log2e + magic;
  const V n = shifted - magic;
  const V r = (clipped - n * ln2_high) - n * ln2_low;
  V series = V{} + T(1);
#pragma GCC unroll 16
  for (int i = degree; i > 0; --i) series = series * r * T(1.0 / i) + T(1);
  BitVector bits;
  __builtin_memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << shift) + (Bits(bias) << shift);
  V power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return x < least ? V{} : series * power;
}

// log(x) for x > 0 that is not subnormal: x = 2^n m with sqrt(1/2) <= m < sqrt(2), and log m = 2 (s + s^3 / 3 + ...) with
// s = (m - 1) / (m + 1), which loses nothing where x is near one.
template <class T, class V>
NAE_INLINE V log_of(V x) {
  constexpr bool is_double = sizeof(T) == 8;
  using Bits = std::conditional_t<is_double, int64_t, int32_t>;
  using BitVector = Vector<Bits, sizeof(V)>;
  constexpr int shift = is_double ? 52 : 23, n_terms = is_double ? 11 : 5;
  constexpr Bits root_half = is_double ? Bits(0x3FE6A09E667F3BCDll) : Bits(0x3F3504F3);
  constexpr T ln2_high = is_double ? T(0.693147180369123816490) : T(0.693359375);
  constexpr T ln2_low = is_double ? T(1.90821492927058770002e-10) : T(-2.12194440054690583e-4);
  BitVector bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const BitVector power = (bits - root_half) >> shift;
  bits -= power << shift;
  V m;
  __builtin_memcpy(&m, &bits, sizeof m);
  const V n = __builtin_convertvector(power, V), s = (m - T(1)) / (m + T(1)), square = s * s;
  V series{};
#pragma GCC unroll 16
  for (int i = n_terms; i > 0; --i) series = series * square + T(1.0 / (2 * i + 1));
  series = series * square;
  return n * ln2_high + (n * ln2_low + T(2) * (s + s * series));
}

}  // namespace nae::NAE_SET
