// Which sets of instructions the processor has, and the kernels that were compiled for them. A set that is missing in
// the object, as all but the portable one are outside x86-64, is one that the processor does not have.
#pragma once
#include "abi.h"
#include "model.h"

// NAE_X86 is 0 elsewhere; a build that defines it as 0 has the portable set alone.
#if !defined(NAE_X86)
#if defined(__x86_64__) || defined(_M_X64)
#define NAE_X86 1
#else
#define NAE_X86 0
#endif
#endif

#if NAE_X86
#include <cpuid.h>
#endif

namespace nae {

#if NAE_X86
namespace avx512 {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace avx512
namespace avx2 {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace avx2
#endif
namespace portable {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace portable

#if NAE_X86
// Which registers the operating system keeps for each program.
inline uint64_t kept_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

inline bool has_on_x86(int instructions) {
  constexpr unsigned fma = 1u << 12, osxsave = 1u << 27, avx2 = 1u << 5;
  constexpr unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  constexpr uint64_t ymm = 0x6, zmm = 0xE6;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & fma) == 0 || (c & osxsave) == 0) return false;
  const uint64_t kept = kept_registers();
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & avx2) == 0 || (kept & ymm) != ymm) return false;
  return instructions == NAE_AVX2 || (instructions == NAE_AVX512 && (b & avx512) == avx512 && (kept & zmm) == zmm);
}
#endif

inline bool has(int instructions) {
  if (instructions == NAE_PORTABLE) return true;
#if NAE_X86
  return has_on_x86(instructions);
#else
  return false;
#endif
}

inline int best_instructions() { return has(NAE_AVX512) ? NAE_AVX512 : has(NAE_AVX2) ? NAE_AVX2 : NAE_PORTABLE; }

template <class T>
const Kernels<T>& kernels_of(int instructions) {
#if NAE_X86
  if (instructions == NAE_AVX512) return avx512::kernels(T{});
  if (instructions == NAE_AVX2) return avx2::kernels(T{});
#endif
  (void)instructions;
  return portable::kernels(T{});
}

}  // namespace nae
