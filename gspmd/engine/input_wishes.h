#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "gspmd/ir/module.h"

namespace gspmd {

// What a program does with a value says which values make sense: integers that index something lie
// below its size, and what a square root, a logarithm or a divisor is made of is positive (the
// second moment of an optimizer, say).
struct Wish {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  int64_t bound = kNone;  // integers: less than this
  bool positive = false;
  bool any() const { return bound != kNone || positive; }
  void merge(const Wish& o) {
    bound = std::min(bound, o.bound);
    positive |= o.positive;
  }
};

// Follows values backward from their uses, through what moves them, adds or scales them, through
// calls, tuples and loops.
class InputWishes {
 public:
  explicit InputWishes(const Module& m);
  // Of leaf `element` of a tuple, or of the value itself (-1).
  Wish of(const Instr& i, int element = -1) const;

 private:
  void visit(const Instr& i);
  void visit_indexing(const Instr& i);
  void visit_structure(const Instr& i, const Wish& w);
  void wish(const Instr& i, const Wish& w, int element = -1);
  void wish_elements(const Instr& from, const Instr& to);

  absl::flat_hash_map<std::pair<const Instr*, int>, Wish> wishes_;
};

}  // namespace gspmd
