#pragma once

#include <absl/types/span.h>

#include <memory>
#include <string_view>

#include "gspmd/base/arena.h"
#include "gspmd/ir/instr.h"
#include "gspmd/ir/shape.h"
#include "gspmd/sharding/sharding.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

// Owns what the modules of one compilation share: interned names, shapes, shardings, spellings,
// attribute memory. Not thread-safe; several contexts can work side by side. Modules keep theirs
// alive.
class Context {
 public:
  Context();
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Arena& arena() { return arena_; }
  std::string_view name(std::string_view text);  // interned: equal texts share one address
  Shape array(ElementType type, absl::Span<const int64_t> dims, const Layout* layout = nullptr,
              uint64_t dynamic = 0);
  Shape tuple(absl::Span<const Shape> elements);
  Shape token();
  Shape scalar(ElementType type) { return array(type, {}); }
  // `shape` with other sizes (same rank); keeps type and layout.
  Shape with_dims(Shape shape, absl::Span<const int64_t> dims);
  Shape with_type(Shape shape, ElementType type);
  // Null where the order is the default and `rest` empty, so that default layouts are spelled one
  // way.
  const Layout* layout(absl::Span<const int64_t> minor_to_major, std::string_view rest);
  const ShardingSpelling* spelling(const ShardingSpelling& s);
  const DeviceGroups* groups(const DeviceGroups& g);
  const DevicePermutation* permutation(const DevicePermutation& p);
  ShardingPool& shardings() { return shardings_; }
  Provenance provenance(absl::Span<const Cause> causes);
  // The union of two sets, order kept; only the first kMaxCauses, so that a value which stands for
  // thousands of equal ones costs no more than they do.
  static constexpr size_t kMaxCauses = 64;
  Provenance merge(Provenance a, Provenance b);

  // The one value of type T that goes with this context, made when first asked for: what higher
  // layers keep for all modules of a compilation.
  template <typename T>
  T& extension() {
    static constexpr char kKey = 0;  // its address stands for T
    std::shared_ptr<void>& slot = extension_slot(&kKey);
    if (slot == nullptr) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }

  Dims dims(absl::Span<const int64_t> d) { return arena_.dims(d); }
  template <typename T>
  const T* attrs(T value) {
    return arena_.make<T>(value);
  }

 private:
  std::shared_ptr<void>& extension_slot(const void* key);
  struct Impl;
  Arena arena_;
  ShardingPool shardings_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gspmd
