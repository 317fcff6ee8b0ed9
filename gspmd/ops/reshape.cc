// reshape and the operators that reinterpret: the same elements in row-major order under other
// sizes.

#include <fmt/format.h>

#include <numeric>

#include "gspmd/ops/op_def.h"
#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Divides the dimensions of both sides into groups of equal products, as small as possible, and
// each group into factors:
//
//   [8,6] -> [2,4,6]   (2 4) 6 -> 2 4 6
//   [6,4] -> [4,6]     no exact common factors: the common major divisor 2 passes, the rest of each
//   side stays apart
class Reshape {
 public:
  Reshape(const Instr& instr, Arena& arena)
      : r_(instr, arena), from_(instr.operand(0)->shape), to_(instr.shape) {}

  const Rule* rule() {
    int i = 0, j = 0;
    while (true) {
      i = skip_ones(from_, i);
      j = skip_ones(to_, j);
      if (i == from_.rank() || j == to_.rank()) return r_.build();
      int begin_i = i, begin_j = j;
      int64_t a = from_.dim(i++), b = to_.dim(j++);
      while (a != b) {
        if (a < b) {
          a *= from_.dim(i++);
        } else {
          b *= to_.dim(j++);
        }
      }
      group(begin_i, i, begin_j, j);
    }
  }

 private:
  static int skip_ones(Shape s, int d) {
    while (d < s.rank() && s.dim(d) == 1) ++d;
    return d;
  }

  // Walks both sides from the major end; a boundary inside a dimension of the other side makes
  // factors of it as long as it divides exactly.
  void group(int i, int end_i, int j, int end_j) {
    int64_t a = from_.dim(i), b = to_.dim(j);  // what is left of the dimensions at hand
    while (i < end_i && j < end_j) {
      if (a == 1) {
        if (++i < end_i) a = from_.dim(i);
        continue;
      }
      if (b == 1) {
        if (++j < end_j) b = to_.dim(j);
        continue;
      }
      int64_t common = std::gcd(a, b);
      bool exact = common == a || common == b;
      if (common > 1) share(common, i, j);
      if (!exact) {  // the rest of this group does not line up
        rest(a / common, 0, i, end_i, from_);
        rest(b / common, r_.result(), j, end_j, to_);
        return;
      }
      a /= common;
      b /= common;
    }
  }

  void share(int64_t size, int i, int j) {
    Factor f;
    f.size = size;
    FactorId id = r_.add(f);
    r_.place(id, 0, i);
    r_.place(id, r_.result(), j);
  }

  // Factors that only one side has: they hold the place of what can not be split in place.
  void rest(int64_t left, int tensor, int d, int end, Shape s) {
    for (; d < end; ++d, left = d < end ? s.dim(d) : 1) {
      if (left == 1) continue;
      Factor f;
      f.kind = FactorKind::kWhole;
      f.size = left;
      f.propagates = false;
      r_.place(r_.add(f), tensor, d);
    }
  }

  RuleBuilder r_;
  Shape from_, to_;
};

const Rule* no_factors(const Instr& instr, Arena& arena) {
  return RuleBuilder(instr, arena).build();
}

// Sizes of an empty array do not say which elements correspond: there are none.
const Rule* rule(const Instr& instr, Arena& arena) {
  return instr.shape.num_elements() == 0 ? no_factors(instr, arena) : Reshape(instr, arena).rule();
}

void verify_reshape(const Instr& i) {
  Shape from = i.operand(0)->shape;
  if (!from.is_array() || !i.shape.is_array())
    refuse("reshape", "operand and result must be arrays");
  if (from.num_elements() != i.shape.num_elements()) {
    refuse("reshape",
           fmt::format("{} has {} elements and {} has {}", to_string(from), from.num_elements(),
                       to_string(i.shape), i.shape.num_elements()),
           "the numbers must be the same");
  }
  if (from.type() != i.shape.type())
    refuse("reshape", fmt::format("{} becomes {}", name_of(from.type()), name_of(i.shape.type())));
}

void verify_bitcast(const Instr& i) {
  Shape from = i.operand(0)->shape;
  if (from.is_array() && i.shape.is_array() && from.bytes() == i.shape.bytes()) return;
  refuse("bitcast", fmt::format("{} becomes {}", to_string(from), to_string(i.shape)),
         "both must be arrays of as many bytes");
}

// The array, then the size of each dimension of the result at run time.
void verify_dynamic_reshape(const Instr& i) {
  Shape from = i.operand(0)->shape;
  if (!from.is_array() || !i.shape.is_array() || from.type() != i.shape.type()) {
    refuse("dynamic-reshape", fmt::format("{} becomes {}", to_string(from), to_string(i.shape)),
           "arrays of one type");
  }
  if (i.num_operands() != i.shape.rank() + 1) {
    refuse("dynamic-reshape",
           fmt::format("{} sizes for {}", i.num_operands() - 1, to_string(i.shape)),
           "one for each dimension");
  }
  for (const Instr* size : i.operands.subspan(1)) {
    if (size->shape.is_scalar() && is_integer(size->shape.type())) continue;
    refuse("dynamic-reshape", fmt::format("a size is {}", to_string(size->shape)),
           "integer scalars are needed");
  }
}

void verify_bitcast_convert(const Instr& i) {
  Shape from = i.operand(0)->shape;
  int64_t a = bits_of(from.type()), b = bits_of(i.shape.type());
  bool arrays = from.is_array() && i.shape.is_array();
  bool fits = arrays && from.rank() == i.shape.rank() && a == b;
  if (arrays && a > b)
    fits = i.shape.rank() == from.rank() + 1 && i.shape.dim(from.rank()) * b == a;
  if (arrays && a < b)
    fits = from.rank() == i.shape.rank() + 1 && from.dim(i.shape.rank()) * a == b;
  for (int d = 0; fits && d < std::min(from.rank(), i.shape.rank()); ++d)
    fits = from.dim(d) == i.shape.dim(d);
  if (fits) return;
  refuse("bitcast-convert",
         fmt::format("{} can not become {}", to_string(from), to_string(i.shape)),
         "a narrower type adds a last dimension of the ratio of widths, a wider one removes it");
}

// The dimension that holds the parts of a wider element belongs to one side only.
const Rule* bitcast_convert_rule(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  int shared = std::min(instr.operand(0)->shape.rank(), instr.shape.rank());
  for (int d = 0; d < shared; ++d) r.parallel({d}, d);
  return r.build();
}

constexpr Field kReshapeFields[] = {stablehlo_name(
    field<&ReshapeAttrs::inferred_dimension>("inferred_dimension", FieldKind::kInt), "-")};

}  // namespace

extern const OpDef kReshapeDef = {
    .opcode = Opcode::kReshape,
    .name = "reshape",
    .attrs = AttrsKind::kReshapeAttrs,
    .fields = kReshapeFields,
    .traits = {.data_movement = true, .sums = PartialSums::kPassInOne},
    .verify = verify_reshape,
    .rule = rule};
extern const OpDef kBitcastDef = {.opcode = Opcode::kBitcast,
                                  .name = "bitcast",
                                  .traits = {.data_movement = true},
                                  .verify = verify_bitcast,
                                  .rule = no_factors};
extern const OpDef kBitcastConvertDef = {.opcode = Opcode::kBitcastConvert,
                                         .name = "bitcast-convert",
                                         .traits = {.data_movement = true},
                                         .verify = verify_bitcast_convert,
                                         .rule = bitcast_convert_rule};
extern const OpDef kDynamicReshapeDef = {.opcode = Opcode::kDynamicReshape,
                                         .name = "dynamic-reshape",
                                         .max_operands = -1,
                                         .traits = {.data_movement = true},
                                         .verify = verify_dynamic_reshape,
                                         .rule = no_factors};

}  // namespace gspmd
