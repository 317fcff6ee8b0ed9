#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <vector>

#include "gspmd/ops/op_def.h"

namespace gspmd::stablehlo {

// f32[8,4] -> tensor<8x4xf32>
std::string type_text(Shape s);
std::string element_type_text(ElementType t);
// dense<...> : tensor<...>
std::string dense_text(const Literal& l);
std::string dense_text(absl::Span<const int64_t> values, absl::Span<const int64_t> dims);
std::string array_text(absl::Span<const int64_t> values);
std::string quoted(std::string_view text);
std::string groups_text(const DeviceGroups* g);  // a table of device numbers

// The names of the arrays that a value of HLO consists of: tuples are taken apart.
using Leaves = std::vector<std::string>;

// Writes the bodies of computations. Regions may use values from outside.
class Exporter {
 public:
  explicit Exporter(const Module& module) : module_(module) {}

  // The instructions of a computation, its parameters standing for `arguments`; the leaves of its
  // root.
  Leaves body(const Computation& c, const std::vector<Leaves>& arguments);
  std::string take() { return std::move(out_); }

  // What the forms of single operators are written with.
  void line(std::string_view text);
  const Leaves& leaves(const Instr& i) const { return values_.at(&i); }
  const std::string& operand(const Instr& i, int k) const { return leaves(*i.operand(k)).at(0); }
  void set(const Instr& i, Leaves leaves) { values_[&i] = std::move(leaves); }
  std::string fresh();
  // `"name"(operands) <{attributes}> regions : types`, and its results as the leaves of `i`.
  void emit(const Instr& i, std::string_view name, const Leaves& operands,
            const std::vector<std::string>& attributes, std::string_view regions = {});
  Leaves all_operands(const Instr& i) const;
  std::string types_of(const Leaves& values) const;
  std::string define(Shape s);  // a new value of that type
  // `({^bb0(%a: T): ...})`: the computation's leaves as block arguments.
  std::string region(const Computation& c, std::string_view terminator = "stablehlo.return");
  std::string block(const Computation& c, const std::vector<Leaves>& arguments,
                    std::string_view header, std::string_view terminator);
  [[noreturn]] void fail(const Instr& i, std::string message) const;
  // The program's result, whose annotation stands on the function.
  bool is_result(const Instr& i) const { return module_.entry()->root() == &i; }

 private:
  void instr(const Instr& i);
  void generic(const Instr& i);
  std::string annotation(const Instr& i) const;

  const Module& module_;
  std::string out_;
  int indent_ = 2;
  int64_t next_ = 0;
  absl::flat_hash_map<const Instr*, Leaves> values_;
  absl::flat_hash_map<std::string, Shape> types_;
};

// Attributes by the fields of the OpDef, as `name = value`.
std::vector<std::string> attribute_texts(const Instr& i);

using Form = void (*)(Exporter&, const Instr&);
Form form_of(Opcode op);

}  // namespace gspmd::stablehlo
