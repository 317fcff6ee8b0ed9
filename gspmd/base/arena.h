#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gspmd/base/dims.h"

namespace gspmd {

// Memory that lives as long as its owner and is given back all at once. Only for trivially
// destructible objects: nothing here ever runs a destructor.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  template <typename T, typename... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  // `n` value-initialised elements.
  template <typename T>
  absl::Span<T> array(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (n == 0) return {};
    T* p = static_cast<T*>(allocate(n * sizeof(T), alignof(T)));
    for (size_t i = 0; i < n; ++i) new (p + i) T{};
    return {p, n};
  }

  template <typename T>
  absl::Span<const T> copy(absl::Span<const T> from) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (from.empty()) return {};
    T* p = static_cast<T*>(allocate(from.size() * sizeof(T), alignof(T)));
    std::uninitialized_copy(from.begin(), from.end(), p);
    return {p, from.size()};
  }

  Dims dims(absl::Span<const int64_t> from) { return Dims(copy(from)); }

  std::string_view text(std::string_view from) {
    if (from.empty()) return {};
    char* p = static_cast<char*>(allocate(from.size(), 1));
    std::memcpy(p, from.data(), from.size());
    return {p, from.size()};
  }

  void* allocate(size_t bytes, size_t alignment) {
    size_t start = (used_ + alignment - 1) & ~(alignment - 1);
    if (start + bytes > capacity_) return allocate_in_new_block(bytes, alignment);
    used_ = start + bytes;
    return block_ + start;
  }

 private:
  void* allocate_in_new_block(size_t bytes, size_t alignment) {
    capacity_ = std::max(next_capacity_, bytes + alignment);
    next_capacity_ = std::min<size_t>(next_capacity_ * 2, size_t{1} << 22);
    blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(capacity_));
    block_ = blocks_.back().get();
    used_ = 0;
    return allocate(bytes, alignment);
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  std::byte* block_ = nullptr;
  size_t used_ = 0, capacity_ = 0, next_capacity_ = 1 << 14;
};

}  // namespace gspmd
