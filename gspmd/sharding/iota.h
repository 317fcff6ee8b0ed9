#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "gspmd/sharding/spelling.h"

namespace gspmd {

// A part of a mixed-radix number: its values are 0, stride, ..., (size-1)*stride. In ids 0..7 = x*4
// + y the axis x is {4, 2} and y is {1, 4}.
struct Piece {
  int64_t stride = 1;
  int64_t size = 1;
  int64_t end() const { return stride * size; }
  friend bool operator==(const Piece&, const Piece&) = default;
};

// A piece of the *places* in a list together with the step of the *ids* there: in
// [4,2]<=[2,4]T(1,0) = 0,4,1,5,2,6,3,7 the digits are {place 2, size 4, id_stride 1} and {place 1,
// size 2, id_stride 4}.
struct Digit {
  Piece place;
  int64_t id_stride = 1;
};

// The product, or nothing where it exceeds 2^63-1. All factors are positive.
std::optional<int64_t> checked_product(absl::Span<const int64_t> factors);

// transpose(reshape(0..n-1, reshape), perm) in normal form: no 1s, no dimensions that stay
// neighbours; [1] where nothing is left. make_iota({2,1,4}, {2,1,0}) == make_iota({2,4}, {1,0});
// make_iota({2,4}, {0,1}) == make_iota({8}, {0}).
IdList make_iota(absl::Span<const int64_t> reshape, absl::Span<const int> perm);
// The same, of any number of ids: 0..n-1.
IdList plain_iota(int64_t n);
// Whether the ids are 0..n-1 in order.
bool is_plain(const IdList& ids);

// Digits of the list, by falling place, major to minor.
std::vector<Digit> iota_digits(const IdList& iota);
// The iota form of a written-out list, where it has one: 0,2,1,3 is <=[2,2]T(1,0).
std::optional<IdList> as_iota(absl::Span<const int64_t> ids);
// Every id, written out.
std::vector<int64_t> expand_ids(const IdList& ids);

// The list `ids` (empty = 0..n-1) with its places taken in another order: `digits` are all digits
// of the places, major to minor in the new order. Over 0..7, {1,4},{4,2} gives <=[2,4]T(1,0).
IdList reorder(const IdList& ids, int64_t n, absl::Span<const Piece> digits);

// Adds to `out` what a piece of the places is in ids, major to minor; neighbours are joined. False
// where the piece and the digits do not nest: places {1, 3} of digits of sizes 2, 2.
bool map_piece(absl::Span<const Digit> digits, Piece places, std::vector<Piece>* out);

}  // namespace gspmd
