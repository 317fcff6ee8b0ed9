#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/formats/mlir/program.h"
#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"

namespace gspmd::stablehlo {

// The translation from the tree of operations, in pieces:
//
//   import.cc         the module, functions, regions, values
//   import_ops.cc     operations whose form differs from HLO's; all others go by their OpDef
//   import_attrs.cc   attributes, by the fields of the OpDef
//   import_sdy.cc     annotations
//   chlo.cc           operations that HLO does not have
class Importer {
 public:
  Importer(std::shared_ptr<Context> context, const mlir::Program& program);
  std::unique_ptr<Module> run();

  // One computation being written.
  struct Frame {
    Computation* computation = nullptr;
    absl::flat_hash_map<mlir::ValueId, Instr*> values;
  };

  void translate(const mlir::Op& op);
  bool can_translate(std::string_view name) const;  // with its dialect

  // What the translations of single operations are written with.
  Module& module() { return *module_; }
  Context& context() { return *context_; }
  Instr* operand(const mlir::Op& op, size_t k);
  std::vector<Instr*> operands(const mlir::Op& op, size_t first = 0);  // all, or those from `first`
  Instr* value(const mlir::Op& op, mlir::ValueId v);
  Shape type(mlir::ValueId v) const { return program_.types[v]; }
  Shape result_type(const mlir::Op& op) const;  // a tuple where there are several
  Instr* add(const mlir::Op& op, Opcode opcode, Shape shape, absl::Span<Instr* const> operands,
             Attrs attrs = {});
  template <typename T>
  Instr* add(const mlir::Op& op, Opcode opcode, Shape shape, std::initializer_list<Instr*> operands,
             T attrs) {
    return add(op, opcode, shape, absl::MakeConstSpan(operands.begin(), operands.size()),
               Attrs(context_->attrs(attrs)));
  }
  Instr* add(const mlir::Op& op, Opcode opcode, Shape shape,
             std::initializer_list<Instr*> operands) {
    return add(op, opcode, shape, absl::MakeConstSpan(operands.begin(), operands.size()));
  }
  // A scalar of a type, and an array full of it.
  Instr* number(const mlir::Op& op, ElementType type, double value);
  Instr* splat(const mlir::Op& op, Instr* scalar, Shape shape);
  // Dimension d of `x` becomes dims[d] of `shape`; those of size 1 may grow.
  Instr* stretch(const mlir::Op& op, Instr* x, Shape shape, absl::Span<const int64_t> dims);
  // The results of `op` are this instruction, or the elements of this tuple.
  void define(const mlir::Op& op, Instr* instr);
  // The same, with the operation's annotation.
  void finish(const mlir::Op& op, Instr* instr) {
    annotate(op, instr, op.attrs);
    define(op, instr);
  }
  void alias(mlir::ValueId v, Instr* instr) { frame_->values[v] = instr; }
  // A computation with the region's arguments as parameters; what it uses from outside must be
  // constants.
  Computation* function_of_region(const mlir::Op& op, const mlir::Region& region);
  // A computation with one tuple parameter, of the region's arguments and `captured`. It returns a
  // tuple of the region's results and `captured`, or the results alone (no tuple where it is one).
  Computation* body_of_region(const mlir::Op& op, const mlir::Region& region,
                              absl::Span<const mlir::ValueId> captured, bool returns_captured);
  // What the regions use from outside, constants left out, in the order of first use.
  std::vector<mlir::ValueId> captured_by(const mlir::Op& op,
                                         absl::Span<const mlir::Region> regions);
  Instr* tuple(const mlir::Op& op, absl::Span<Instr* const> elements);
  Instr* element(const mlir::Op& op, Instr* tuple, int64_t index);
  Computation* computation_of(const mlir::Op& at, const std::string& function);
  [[noreturn]] void fail(const mlir::Op& op, std::string message, std::string hint = "") const;

  // import_attrs.cc
  void* fields(const mlir::Op& op, const OpDef& def);
  DimVector dims(const mlir::Op& op, const mlir::Attr& a) const;
  DimVector dims_or(const mlir::Op& op, std::string_view key, size_t rank, int64_t value) const;
  int64_t integer_or(const mlir::Op& op, std::string_view key, int64_t value) const;
  std::string_view text_of(const mlir::Op& op, std::string_view key) const;
  const mlir::Attr* find(const mlir::Op& op, std::string_view key) const;

  // import_sdy.cc
  void read_mesh(const mlir::Op& op);
  bool sdy_operation(const mlir::Op& op);
  void annotate(const mlir::Op& op, Instr* instr, const mlir::Attrs& attrs);
  // mhlo.sharding or sdy.sharding of one value, with its mesh in place.
  std::optional<ShardingSpelling> spelling(const mlir::Op& op, const mlir::Attrs& attrs);

 private:
  void read_header();
  void entry(const mlir::Op& function);
  void arguments(const mlir::Op& function);
  void donations(const mlir::Op& op, const mlir::Attrs& attrs, int64_t parameter, int64_t results);
  Instr* results(const mlir::Op& function, const mlir::Op& terminator);
  const mlir::Op* body(const mlir::Region& region);  // translates all; the terminator
  const mlir::Op& body_or_fail(const mlir::Op& op, const mlir::Region& region);
  void move_last(Computation* c);
  void generic(const mlir::Op& op, const OpDef& def);
  const Metadata* metadata(const mlir::Op& op);
  void note_constants(const mlir::Region& region);

  // import_attrs.cc
  void field(const mlir::Op& op, const Field& f, const mlir::Attr& a, void* attrs);
  void enumerated(const mlir::Op& op, const Field& f, const mlir::Attr& a, void* member);
  void window(const mlir::Op& op, const OpDef& def, void* attrs);
  void whole(const mlir::Op& op, const OpDef& def, void* attrs);
  void conv_dims(const mlir::Op& op, ConvDims* to);
  const DeviceGroups* groups(const mlir::Op& op, const mlir::Attr& a);
  std::string_view precision(const mlir::Op& op);
  std::string_view algorithm(const mlir::Op& op);

  // import_sdy.cc
  void border(const mlir::Op& op);
  void named_computation(const mlir::Op& op);
  void constrain(const mlir::Op& op, std::string_view target, std::string_view key);

  std::shared_ptr<Context> context_;
  const mlir::Program& program_;
  std::unique_ptr<Module> module_;
  Frame* frame_ = nullptr;
  std::vector<std::pair<std::string, std::string>> meshes_;  // names, #sdy.mesh<["x"=2]>
  absl::flat_hash_map<std::string, const mlir::Op*> functions_;
  absl::flat_hash_map<std::string, Computation*> computations_;  // null while being translated
  absl::flat_hash_map<mlir::ValueId, const mlir::Op*> constants_;
  absl::flat_hash_map<int32_t, const Metadata*> metadata_;
};

// How single operations are translated; null where the OpDef says all.
using Translation = void (*)(Importer&, const mlir::Op&);
Translation translation_of(std::string_view name);
Translation chlo_translation_of(std::string_view name);

}  // namespace gspmd::stablehlo
