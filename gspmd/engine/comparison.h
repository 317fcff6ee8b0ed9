#pragma once

#include <cstdint>
#include <vector>

#include "gspmd/engine/buffer.h"
#include "gspmd/engine/choices.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// How one result of the partitioned program compares with the one-device program's.
struct ResultCheck {
  Shape shape;
  Sharding sharding;
  bool agrees = true;
  bool exact = true;           // bit for bit
  double worst = 0;            // the largest |N - ref64|
  double allowed = 0;          // what was allowed there
  int64_t worst_element = -1;  // row-major index in the whole array
  double got = 0, expected = 0;
  int64_t differing_replica = -1;  // a device whose copy differs from its replicas'
};

// Compares a result of the partitioned program with 64-bit references. What is allowed is fixed by
// the first reference: 4 * its largest distance from the run in the program's own types + 2 ulp.
class Comparison {
 public:
  Comparison(Buffer one, Buffer many, const Buffer& reference);

  bool exact() const { return exact_; }  // one == many, bit for bit
  void compare(const Buffer& reference, ResultCheck* out) const;
  void add_deviation(const Buffer& reference, Deviation* out) const;
  // The largest distance of two references in parts of what is allowed.
  double change(const Buffer& a, const Buffer& b) const;

 private:
  bool floats() const;
  bool same_integer(const Buffer& reference, int64_t k) const;
  // Calls f(element, distance, allowed, got, expected) where they are not equal.
  template <typename F>
  void for_each_difference(const Buffer& reference, F&& f) const;

  Buffer one_, many_;
  double rounding_ = 0;
  bool exact_ = false;
};

}  // namespace gspmd
