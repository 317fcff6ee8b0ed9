#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/sharding/spelling.h"

namespace gspmd {

class ProgramWriter;  // what the builders and values of one module share

// An expression: a value of a program that is being written, as cheap as a pointer; valid while its
// Builder lives.
class Expr {
 public:
  Expr() = default;
  Expr(ProgramWriter* program, Instr* instr) : program_(program), instr_(instr) {}
  Instr* instr() const { return instr_; }
  ProgramWriter& writer() const { return *program_; }
  Shape shape() const { return instr_->shape; }
  ElementType type() const { return instr_->shape.type(); }
  int rank() const { return instr_->shape.rank(); }

 private:
  ProgramWriter* program_ = nullptr;
  Instr* instr_ = nullptr;
};

using Exprs = absl::Span<const Expr>;
using Ints = absl::Span<const int64_t>;

// Writes programs in C++. Result shapes are inferred, and every instruction is verified as soon as
// it is made: what does not fit throws Error with the operator, the numbers and a hint.
// After an Error the program is to be given up.
//
//   Builder b("layer", /*num_partitions=*/8);
//   NamedMesh mesh{{{"x", 2}, {"y", 4}}};
//   Expr x = MeshSplit(b.parameter("x", ElementType::kF32, {64, 512}), mesh, {0, -1});
//   Expr w = MeshSplit(b.parameter("w", ElementType::kF32, {512, 1024}), mesh, {-1, 1});
//   std::unique_ptr<Module> program = b.build(tanh(einsum("bm,mh->bh", x, w)));
//
// Operators with operands are free functions (below and in builder_ops.h); they write into the
// computation of their operands.
class Builder {
 public:
  explicit Builder(std::string_view module_name, int64_t num_partitions = 1,
                   std::shared_ptr<Context> context = std::make_shared<Context>());

  Module& module() const;
  Context& context() const { return module().context(); }
  Computation* computation() const { return computation_; }
  Shape shape(ElementType type, Ints dims = {}) const { return context().array(type, dims); }

  // The next parameter of this computation.
  Expr parameter(std::string_view name, Shape shape);
  Expr parameter(std::string_view name, ElementType type, Ints dims = {}) {
    return parameter(name, shape(type, dims));
  }
  // A number in any array type: rounded to nearest for floats, as it is where an integer type holds
  // it (else Error); pred: whether it is not 0; complex: the real part.
  Expr scalar(ElementType type, double value);
  // Row-major elements; as many as `dims` say.
  Expr constant(Ints dims, absl::Span<const float> elements);
  Expr constant(Ints dims, absl::Span<const int32_t> elements);
  Expr constant(const Literal& literal);
  // The index along `dimension`.
  Expr iota(ElementType type, Ints dims, int64_t dimension);

  // Any operator, also one without operands. See op() below.
  Expr op(Opcode opcode, Exprs operands, Attrs attrs = {}, Shape stated = {},
          absl::Span<Computation* const> called = {});

  // Another computation of the module. `body` gets its builder and its parameters and returns its
  // result:
  //   b.define("twice", {b.shape(ElementType::kF32)},
  //            [](Builder&, Exprs p) { return p[0] + p[0]; });
  using Body = std::function<Expr(Builder& b, Exprs params)>;
  Computation* define(std::string_view name, absl::Span<const Shape> params, const Body& body);

  // What is written from now on comes from this place of the user's program.
  void locate(std::string_view op_name, std::string_view source_file = {}, int32_t line = 0);

  // Ends the program: `result` becomes that of the entry computation, whose builder this must be.
  // Verifies the module. Once only; values stay valid as long as the builder and the module.
  std::unique_ptr<Module> build(Expr result);

 private:
  friend class ProgramWriter;
  Builder(ProgramWriter* program, Computation* computation)
      : program_(program), computation_(computation) {}
  std::shared_ptr<ProgramWriter> owned_;  // by the entry's builder
  ProgramWriter* program_;
  Computation* computation_;
};

// Any operator, with at least one operand. `attrs` of the operator's kind (on the stack will do:
// they are copied with all that they point to, but for literals, groups and permutations, which are
// the context's); left out: default values. `stated`: the result shape, where operands and
// attributes do not determine it. Throws Error.
Expr op(Opcode opcode, Exprs operands, Attrs attrs = {}, Shape stated = {},
        absl::Span<Computation* const> called = {});

// The paper's annotation (section 3.1): dimension d of `x` is split along axis number mapping[d] of
// the mesh, or along none (-1). Each axis is used at most once; x is replicated along the others.
//
//   MeshSplit(x, mesh, {0, -1, 1})   on mesh x=2,y=4: {devices=[2,1,4]<=[8]}
//
// Dimensions in `open` may be split further by completion. On a parameter that has no annotation
// yet it is the parameter's own (how the caller hands it in) and x is returned; elsewhere it is a
// `Sharding` custom-call of x. Throws Error.
Expr MeshSplit(Expr x, const NamedMesh& mesh, Ints mapping, Ints open = {});
// Any other sharding, as HLO text spells it: annotate(x, "{devices=[4,2]<=[2,4]T(1,0)}").
Expr annotate(Expr x, std::string_view sharding);

}  // namespace gspmd
