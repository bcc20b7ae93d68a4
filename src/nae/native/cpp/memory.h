// Memory that begins at a cache line and holds zeros.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace nae {

class Memory {
 public:
  // A bit more than asked for, so that a whole vector may be read at the end.
  template <class T>
  T* take(int64_t n) {
    constexpr std::align_val_t line{64};
    const size_t bytes = size_t(n > 0 ? n : 0) * sizeof(T) + 64;
    void* found = ::operator new(bytes, line);
    std::memset(found, 0, bytes);
    parts_.emplace_back(found);
    return static_cast<T*>(found);
  }

 private:
  struct Free {
    void operator()(void* part) const { ::operator delete(part, std::align_val_t{64}); }
  };
  std::vector<std::unique_ptr<void, Free>> parts_;
};

}  // namespace nae
