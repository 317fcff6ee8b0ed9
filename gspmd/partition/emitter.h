#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/sharding/device_groups.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// The scalar reducers `combiner(a, b)` of one module, made when first needed, and other
// computations that were made for their callers and stand before them.
class ReducerPool {
 public:
  explicit ReducerPool(Module* module) : module_(*module) {}
  Computation* get(Combiner combiner, ElementType type);
  void add(Computation* callee) { all_.push_back(callee); }
  const std::vector<Computation*>& all() const { return all_; }  // in the order of making

 private:
  Module& module_;
  std::vector<Computation*> all_;
  absl::flat_hash_map<std::pair<Combiner, ElementType>, Computation*> made_;
};

// The binary operator that a combiner is.
Opcode opcode_of(Combiner c);

// Writes the instructions of one per-device computation. Everything it makes carries the metadata
// of the source instruction set by `Emitter::Source`, and a Cause with the current reason. Scalars
// that depend on nothing but the device (constants, coordinates along axes) are made once per
// computation.
class Emitter {
 public:
  Emitter(Module* out, Computation* computation, ReducerPool* reducers)
      : out_(*out), context_(out->context()), computation_(computation), reducers_(*reducers) {}

  Module& module() { return out_; }
  Context& context() { return context_; }
  Computation* computation() { return computation_; }

  // While alive, what is emitted stands for `source`, for `reason`.
  class Source {
   public:
    Source(Emitter& e, const Instr& source, Reason reason, std::string_view fact = {});
    ~Source();
    Source(const Source&) = delete;

   private:
    Emitter& emitter_;
    const Metadata* metadata_;
    Provenance provenance_;
    const Instr* source_;
  };
  // While alive, the same source with another reason.
  class Because {
   public:
    Because(Emitter& e, Reason reason, std::string_view fact = {});
    ~Because() { emitter_.provenance_ = provenance_; }
    Because(const Because&) = delete;

   private:
    Emitter& emitter_;
    Provenance provenance_;
  };

  Instr* add(Opcode opcode, Shape shape, absl::Span<Instr* const> operands, Attrs attrs = {},
             std::string_view name = {});
  template <typename T>
  Instr* add(Opcode opcode, Shape shape, std::initializer_list<Instr*> operands, T attrs) {
    return add(opcode, shape, absl::MakeConstSpan(operands.begin(), operands.size()),
               context_.attrs(attrs));
  }
  Instr* add(Opcode opcode, Shape shape, std::initializer_list<Instr*> operands) {
    return add(opcode, shape, absl::MakeConstSpan(operands.begin(), operands.size()));
  }

  // Scalar constants, memoised.
  Instr* integer(ElementType type, int64_t value);
  Instr* zero(ElementType type);  // of any type
  Instr* identity(Combiner c,
                  ElementType type);  // what leaves the other operand as it is: 0, 1, -inf, ...
  Instr* scalar(const Literal& value);

  Instr* broadcast(Instr* scalar, absl::Span<const int64_t> dims);
  Instr* broadcast(Instr* value, absl::Span<const int64_t> dims,
                   absl::Span<const int64_t> operand_dims);
  Instr* iota(ElementType type, absl::Span<const int64_t> dims, int64_t dimension);
  Instr* binary(Opcode op, Instr* a, Instr* b);
  Instr* compare(Direction direction, Instr* a, Instr* b);
  Instr* select(Instr* predicate, Instr* on_true, Instr* on_false);
  Instr* clamp(Instr* low, Instr* x, Instr* high);
  Instr* convert(Instr* x, ElementType type);
  Instr* reshape(Instr* x, absl::Span<const int64_t> dims);
  Instr* transpose(Instr* x, absl::Span<const int64_t> permutation);
  Instr* slice(Instr* x, int dim, int64_t start, int64_t limit, int64_t stride = 1);
  // Edge padding of one dimension (may be negative) with a scalar.
  Instr* pad(Instr* x, int dim, int64_t low, int64_t high, int64_t interior, Instr* value);
  Instr* dynamic_slice(Instr* x, int dim, Instr* start, int64_t size);
  Instr* dynamic_update_slice(Instr* x, Instr* update, int dim, Instr* start);

  // The integer type that device offsets of a dimension of `size` need: s32, or s64 where it is too
  // large.
  static ElementType index_type(int64_t size);
  // This device's mixed-radix number along `axes` (major to minor): which shard of a dimension
  // split by them it holds. In [0, product). Arithmetic on partition-id only; a mesh with an
  // irregular device order looks its position up in a table.
  Instr* coordinate(const Mesh& mesh, const AxisList& axes, ElementType type);
  // coordinate * block: the global index of the first element of this device's block.
  Instr* offset(const Mesh& mesh, const AxisList& axes, int64_t block, ElementType type);

  // Collectives. What has no elements is not sent.
  Instr* all_gather(Instr* x, int dim, const Mesh& mesh, const AxisList& axes);
  Instr* all_reduce(Instr* x, const Mesh& mesh, const AxisList& axes, Combiner combiner);
  Instr* reduce_scatter(Instr* x, int dim, const Mesh& mesh, const AxisList& axes,
                        Combiner combiner);
  // Splits `dimension` in as many parts as the group has members; part j goes to member j; received
  // parts are concatenated.
  Instr* all_to_all(Instr* x, int dimension, const Mesh& mesh, const AxisList& axes);
  Instr* collective_permute(Instr* x, const Mesh& mesh, const DevicePermutation& permutation);
  Instr* collective_permute(Instr* x, std::vector<std::pair<int64_t, int64_t>> pairs);

  // `shape` with every leaf cut to its local block.
  Shape local_shape(Shape shape, absl::Span<const Sharding> leaves);

  ReducerPool& reducers() { return reducers_; }

 private:
  CollectiveAttrs collective_attrs(const Mesh& mesh, const AxisList& axes,
                                   absl::Span<const int64_t> dims);
  Instr* position(const Mesh& mesh, ElementType type);
  Instr* add_reducing(Opcode opcode, Shape shape, Instr* x, const CollectiveAttrs& attrs,
                      Combiner combiner);
  Instr* coordinate_run(const Mesh& mesh, const AxisList& axes, ElementType type);

  Module& out_;
  Context& context_;
  Computation* computation_;
  ReducerPool& reducers_;
  const Metadata* metadata_ = nullptr;
  Provenance provenance_;
  const Instr* source_ = nullptr;
  absl::flat_hash_map<std::pair<ElementType, int64_t>, Instr*> integers_;
  absl::flat_hash_map<std::pair<ElementType, Combiner>, Instr*> identities_;
  absl::flat_hash_map<std::pair<AxisList, std::pair<const Mesh*, ElementType>>, Instr*>
      coordinates_;
  absl::flat_hash_map<std::pair<AxisList, const Mesh*>, const DeviceGroups*> groups_;
  absl::flat_hash_map<std::pair<Shape, Sharding>, Shape> local_shapes_;  // of arrays
};

}  // namespace gspmd
