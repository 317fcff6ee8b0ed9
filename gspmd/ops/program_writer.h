#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string_view>
#include <utility>

#include "gspmd/ir/module.h"
#include "gspmd/ops/builder.h"

namespace gspmd {

// What the builders and values of one module share. Internal to builder*.cc.
class ProgramWriter {
 public:
  explicit ProgramWriter(std::unique_ptr<Module> module)
      : owned_(std::move(module)), module_(owned_.get()) {}

  Module& module() { return *module_; }
  Context& context() { return module_->context(); }

  // Adds and verifies an instruction.
  Expr emit(Computation* c, Opcode opcode, Exprs operands, Attrs attrs, Shape stated,
            absl::Span<Computation* const> called);
  Computation* define(std::string_view name, absl::Span<const Shape> params,
                      const Builder::Body& body);
  Computation* reducer(Opcode opcode, ElementType type);
  void locate(const Metadata& metadata) { metadata_ = context().attrs(metadata); }
  std::unique_ptr<Module> finish(Expr result);

 private:
  std::unique_ptr<Module> owned_;  // null once finished
  Module* module_;
  const Metadata* metadata_ = nullptr;
  absl::flat_hash_map<std::pair<Opcode, ElementType>, Computation*> reducers_;
};

}  // namespace gspmd
