#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/container/inlined_vector.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string_view>

#include "gspmd/ir/context.h"
#include "gspmd/ir/module.h"
#include "gspmd/ops/field.h"
#include "gspmd/ops/rule.h"

namespace gspmd {

// Whether adding up partial sums may wait until after the operator.
enum class PartialSums : uint8_t {
  kEnd,        // no: they are added up before
  kPassInOne,  // linear in each operand alone (a * b): one operand is partial
  kPassInAll,  // linear in all operands together (a + b): all are partial
};

// What an operator is to passes that do not know it by name.
struct OpTraits {
  bool elementwise =
      false;  // each result element depends on the operands' elements of the same index only
  bool shape_inferable = false;  // HLO text may omit the result shape
  bool structural =
      false;  // no rule: tuples, control flow, calls, tokens (propagate and partition handle them)
  bool collective = false;      // communicates between devices
  bool side_effect = false;     // must be kept even without users (custom-call: see its attribute)
  bool data_movement = false;   // moves or names elements and computes nothing
  bool transcendental = false;  // a function as exp or sqrt, that hardware has another unit for
  PartialSums sums = PartialSums::kEnd;
};

struct InferArgs {
  Context& context;
  absl::Span<const Shape> operands;
  Attrs attrs;
  absl::Span<Computation* const> called;
  Shape stated;  // the shape that the program writes; null if none. Needed where operands do not
                 // determine it
};

// Everything the compiler knows about one operator; each in one file of ops/, all else is derived.
struct OpDef {
  Opcode opcode;
  std::string_view name;
  std::string_view stablehlo =
      {};  // its name there without dialect; empty = the same with '_' for '-'
  int min_operands = 1;
  int max_operands = 1;  // -1: any number
  AttrsKind attrs = AttrsKind::kNone;
  absl::Span<const Field> fields = {};  // in the order XLA prints them
  absl::Span<const std::string_view> called =
      {};  // names of called computations, e.g. {"condition", "body"}
  std::string_view called_list =
      {};  // or one list, e.g. "branch_computations"; both for conditional
  OpTraits traits = {};
  // The result shape; throws Error (without place) where operands or attributes do not fit, with
  // the numbers and a hint. Null: the stated shape is taken.
  Shape (*infer)(const InferArgs& args) = nullptr;
  // Where traits.sums lets partial sums pass: whether through this operand of this instruction.
  // Null: through each. Operands that they do not pass through are complete.
  bool (*sums_pass)(const Instr& instr, int operand) = nullptr;
  // Checks that `infer` can not make (attributes against the stated shape); throws Error.
  void (*verify)(const Instr& instr) = nullptr;
  // Null for structural operators. Pure: looks at this instruction (and the reducer it calls) only.
  const Rule* (*rule)(const Instr& instr, Arena& arena) = nullptr;
  // Floating-point operations per point of the iteration space: 2 for a multiply-add, 0 for data
  // movement.
  double flops_per_point = 0;
};

extern const OpDef* const kOpDefs[kNumOpcodes];
inline const OpDef& def(Opcode op) { return *kOpDefs[static_cast<size_t>(op)]; }
inline const OpDef& def(const Instr& i) { return def(i.opcode); }

// The shape of op's result: inferred, or else the stated one. Throws Error (without place), also
// where the number of operands is wrong.
Shape infer_shape(Opcode op, const InferArgs& args);

// Whether partial sums may pass from this operand to the result, an array.
bool sums_pass(const Instr& instr, int operand);

// Fresh attributes of the operator's kind with default values; null data for kNone.
void* make_attrs(AttrsKind kind, Arena& arena);

// The rule of an instruction, memoised by (opcode, content of attributes, shapes, called
// computations or what they combine) for one context: operators that are alike share one rule.
class RuleCache {
 public:
  const Rule& get(const Instr& instr);  // operator must not be structural
  void reserve(uint32_t num_ids) { by_id_.resize(std::max<size_t>(by_id_.size(), num_ids)); }

 private:
  struct Key {
    Opcode opcode;
    Attrs attrs;
    absl::Span<const Shape> shapes;  // result, operands
    absl::Span<const void* const> called;

    bool operator==(const Key& other) const;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.opcode, k.hash_of_attrs(), k.shapes, k.called);
    }
    size_t hash_of_attrs() const;
  };
  struct Entry {
    Key key;
    const Rule* rule;
  };
  struct EntryHash {
    using is_transparent = void;
    size_t operator()(const Key& k) const { return absl::HashOf(k); }
    size_t operator()(const Entry* e) const { return absl::HashOf(e->key); }
  };
  struct EntryEqual {
    using is_transparent = void;
    bool operator()(const Entry* a, const Key& b) const { return a->key == b; }
    bool operator()(const Entry* a, const Entry* b) const { return a->key == b->key; }
  };
  const Rule* find_or_make(const Instr& instr);

  Arena arena_;
  std::vector<Shape> shapes_;  // of the key that is looked up
  std::vector<const void*> called_;
  absl::flat_hash_set<const Entry*, EntryHash, EntryEqual> rules_;
  std::vector<std::pair<const Instr*, const Rule*>> by_id_;  // passes ask for the same ones often
};

// Checks one instruction: operand count, inferred against stated shape, attributes, called
// computations' signatures. Throws Error with its place. verify(Module) also checks names, order of
// definition, parameters, cyclic calls.
void verify(const Module& m, const Instr& i);
void verify(const Module& m);

// The combiner that a reducer computation computes (add -> kSum, ...; looks at the root and its two
// parameters); kNone if it is none of them. Shared by reduce, reduce-window, scatter, all-reduce.
Combiner combiner_of(const Computation& reducer);

}  // namespace gspmd
