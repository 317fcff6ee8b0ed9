#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "gspmd/base/check.h"

namespace gspmd {

// Position of an axis in its Mesh (0 = most major). Meshes are factored into axes as fine as the
// module ever needs, so a "sub-axis" of what the user wrote is an axis of its own here.
using AxisId = uint8_t;
inline constexpr int kMaxAxes = 23;

// A set of axes of one mesh.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<AxisId> axes) {
    for (AxisId a : axes) insert(a);
  }
  static constexpr AxisSet first(int n) { return AxisSet((uint32_t{1} << n) - 1); }
  static constexpr AxisSet from_bits(uint32_t bits) { return AxisSet(bits); }

  constexpr bool contains(AxisId a) const { return bits_ >> a & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr void insert(AxisId a) { bits_ |= uint32_t{1} << a; }
  constexpr void erase(AxisId a) { bits_ &= ~(uint32_t{1} << a); }
  constexpr bool contains_all(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr bool intersects(AxisSet other) const { return (bits_ & other.bits_) != 0; }
  constexpr uint32_t bits() const { return bits_; }

  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
  friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }
  constexpr AxisSet& operator|=(AxisSet b) { return *this = *this | b; }
  constexpr AxisSet& operator-=(AxisSet b) { return *this = *this - b; }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

  // Calls f(AxisId) from the most major axis to the most minor.
  template <typename F>
  constexpr void for_each(F f) const {
    for (uint32_t rest = bits_; rest != 0; rest &= rest - 1) {
      f(static_cast<AxisId>(std::countr_zero(rest)));
    }
  }

 private:
  explicit constexpr AxisSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// The axes that split one dimension, major to minor; no axis twice.
class AxisList {
 public:
  AxisList() = default;
  AxisList(std::initializer_list<AxisId> axes) {
    for (AxisId a : axes) push_back(a);
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  AxisId operator[](int i) const { return ids_[i]; }
  AxisId back() const { return ids_[size_ - 1]; }
  const AxisId* begin() const { return ids_; }
  const AxisId* end() const { return ids_ + size_; }

  void push_back(AxisId a) {
    GSPMD_CHECK(size_ < kMaxAxes, "too many axes in a list");
    ids_[size_++] = a;
  }
  void pop_back() { ids_[--size_] = 0; }
  void append(const AxisList& other) {
    for (AxisId a : other) push_back(a);
  }
  void resize_down(int n) {
    while (size_ > n) pop_back();
  }
  void erase(AxisId a) {
    AxisList rest;
    for (AxisId x : *this) {
      if (x != a) rest.push_back(x);
    }
    *this = rest;
  }

  AxisList prefix(int n) const { return slice(0, n); }
  AxisList slice(int from, int to) const {
    AxisList out;
    for (int i = from; i < to; ++i) out.push_back(ids_[i]);
    return out;
  }
  // Number of leading axes that both lists share.
  int common_prefix(const AxisList& other) const {
    int n = std::min(size_, other.size_), i = 0;
    while (i < n && ids_[i] == other.ids_[i]) ++i;
    return i;
  }
  bool starts_with(const AxisList& other) const { return common_prefix(other) == other.size(); }
  bool contains(AxisId a) const { return std::find(begin(), end(), a) != end(); }
  AxisSet set() const {
    AxisSet s;
    for (AxisId a : *this) s.insert(a);
    return s;
  }

  friend bool operator==(const AxisList& a, const AxisList& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;  // what follows the last axis is zero
  }
  template <typename H>
  friend H AbslHashValue(H h, const AxisList& a) {
    return H::combine(H::combine_contiguous(std::move(h), a.ids_, a.size_), a.size_);
  }

 private:
  uint8_t size_ = 0;
  AxisId ids_[kMaxAxes] = {};
};

}  // namespace gspmd
