#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/ir/context.h"
#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

// Makes single instructions for tests of operators' definitions: operands are parameters of given
// shapes.
class OpBench {
 public:
  OpBench();

  // "f32[8,4]", "(f32[2], (s32[], token[]))".
  Shape shape(std::string_view text);
  Dims dims(std::initializer_list<int64_t> d) { return context_->dims(std::vector<int64_t>(d)); }
  Window window(std::initializer_list<WindowDim> w);
  // n groups of `size` devices.
  const DeviceGroups* groups(int64_t n, int64_t size);
  template <typename T>
  Attrs attrs(T value) {
    return context_->attrs(value);
  }
  // A computation of two scalars, `op(a, b)`.
  Computation* reducer(Opcode op, std::string_view scalar = "f32[]");
  // A computation of parameters with these shapes and a root that is a tuple of shape `result`.
  Computation* opaque(std::initializer_list<std::string_view> params, std::string_view result);

  // The inferred shape, or "error: MESSAGE (HINT)".
  std::string infer(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs = {},
                    std::initializer_list<Computation*> called = {}, std::string_view stated = "");
  // The instruction, with its inferred (or else stated) shape.
  Instr* make(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs = {},
              std::initializer_list<Computation*> called = {}, std::string_view stated = "");
  // Its rule.
  std::string rule(Opcode op, std::initializer_list<std::string_view> operands, Attrs attrs = {},
                   std::initializer_list<Computation*> called = {}, std::string_view stated = "");
  const Rule& rule_of(const Instr& i);

  Context& context() { return *context_; }
  Module& module() { return *module_; }

 private:
  Shape infer_shape(Opcode op, absl::Span<const Shape> operands, Attrs attrs,
                    absl::Span<Computation* const> called, Shape stated);
  Shape read(std::string_view* text);

  std::shared_ptr<Context> context_;
  std::unique_ptr<Module> module_;
  Computation* main_;
  std::vector<std::unique_ptr<DeviceGroups>> groups_;
  Arena arena_;
};

}  // namespace gspmd
