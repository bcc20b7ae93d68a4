// Which sets of instructions the processor has, and the kernels that were compiled for them. A set that is missing in
// the object, as all but the portable one are outside x86-64, is one that the processor does not have.
#pragma once
#include "abi.h"
#include "model.h"

#if defined(__x86_64__) || defined(_M_X64)
#define NAE_X86 1
#else
#define NAE_X86 0
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

inline bool has(int instructions) {
  if (instructions == NAE_PORTABLE) return true;
#if NAE_X86
  __builtin_cpu_init();
  if (instructions == NAE_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (instructions == NAE_AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && has(NAE_AVX2);
#endif
  return false;
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
