#pragma once

#include <absl/container/inlined_vector.h>
#include <absl/container/node_hash_map.h>

#include <array>
#include <vector>

#include "gspmd/partition/reconcile.h"

namespace gspmd {

// What an operator may do as its values are laid out, and what the cheapest way costs, in a
// Machine's units.
struct Choice {
  std::vector<Candidate> candidates;   // none where `agrees`; priced where one might be cheapest
  std::vector<int64_t> compute_units;  // of each, without reshards
  size_t cheapest = 0;
  // The commonest case: everything is laid out as the rule wants it, and nothing is partial. Then
  // the candidates could only be this, with no reshard, and not splitting at all.
  bool agrees = false;

  absl::InlinedVector<Sharding, 4> layouts;  // of all tensors: operands as needed, results as made
  int64_t compute = 0;                       // the operator on its shards
  int64_t result_moves = 0;                  // reshards of its results
  int64_t total = 0;                         // reshards of its operands as well
  int64_t idle = 1;  // devices that compute the same: product of the axes that split nothing
};

// Decides for one operator at a time how it is partitioned, given how its operands are laid out and
// how its results are wanted. Operators that are alike (layers of a model) are looked at once.
class Chooser {
 public:
  explicit Chooser(PartitionState& state) : s_(state) {}

  // The iteration space of an operator over the mesh that most of its values are on.
  Iteration iteration(const Instr& i);
  const Choice& choose(const Iteration& it, const Situation& now);
  // All candidates: laid out, with the price of the computation alone; and priced.
  std::vector<Candidate> laid_out(const Iteration& it, const Situation& now);
  std::vector<Candidate> priced(const Iteration& it, const Situation& now);
  // Units of moving a value; nothing where either is none.
  int64_t move(Shape shape, Sharding from, Sharding to);

 private:
  struct Key {
    const Rule* rule;
    absl::InlinedVector<const void*, 6> layouts;
    absl::InlinedVector<uint64_t, 4> facts;  // of the operands
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& k) {
      return H::combine(std::move(h), k.rule, k.layouts, k.facts);
    }
  };
  static uint64_t fact(const Instr& operand);
  void set_key(const Iteration& it, const Situation& now);

  size_t price_cheapest(const Iteration& it, const Situation& now, std::vector<Candidate>* all);
  Choice make(const Iteration& it, const Situation& now);
  bool agrees(const Iteration& it, const Situation& now);
  bool collect_factors(const Iteration& it, const Situation& now);
  bool collect_dim(const Iteration& it, int t, int d, const AxisList& axes);
  bool agree_on(FactorId f, const AxisList& axes);
  bool says_agreed_factors(const Iteration& it, int t, Sharding s) const;

  PartitionState& s_;
  std::array<AxisList, kMaxFactors> agreed_, projected_;  // of the operator at hand
  Key key_;
  absl::node_hash_map<Key, Choice> known_;
};

}  // namespace gspmd
