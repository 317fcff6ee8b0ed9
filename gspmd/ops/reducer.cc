#include "gspmd/ops/reducer.h"

#include <fmt/format.h>

#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

// Integers do not mix with floats; among floats an accumulator may be wider than the elements.
bool can_accumulate(ElementType element, ElementType accumulator) {
  if (element == accumulator) return true;
  return class_of(element) == class_of(accumulator);
}

void check_reducer(const Computation& reducer, int n, std::string_view op) {
  int given = static_cast<int>(reducer.params().size());
  if (given == 2 * n) return;
  refuse(op,
         fmt::format("reducer {} has {} parameters, {} arrays need {}", reducer.name(), given, n,
                     2 * n),
         "one accumulator and one element for each array");
}

}  // namespace

int check_reduction_operands(const InferArgs& args, std::string_view op) {
  int count = static_cast<int>(args.operands.size());
  if (count == 0 || count % 2 != 0) {
    refuse(op, fmt::format("{} operands: an even number is needed", count),
           "as many initial values as arrays");
  }
  int n = count / 2;
  check_same_sizes(args, 0, n, op);
  for (int i = 0; i < n; ++i) {
    Shape x = array_operand(args, i, op), init = array_operand(args, n + i, op);
    if (!init.is_scalar()) {
      refuse(op, fmt::format("initial value {} is {}, not a scalar", i, to_string(init)));
    }
    if (!can_accumulate(x.type(), init.type())) {
      refuse(op,
             fmt::format("operand {} is {} and its initial value {}", i, to_string(x),
                         to_string(init)),
             "convert one of them");
    }
  }
  if (!args.called.empty()) check_reducer(*args.called[0], n, op);
  return n;
}

}  // namespace gspmd
