#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/base/json_text.h"
#include "gspmd/partition/reconcile.h"

namespace gspmd {

// A value that lies otherwise than completion said, and what completion's layout would cost more.
struct LayoutDecision {
  std::string_view computation, value;
  const Metadata* metadata = nullptr;
  Sharding completion, chosen;
  int64_t saved_units = 0;
};

// An operator that could be partitioned in more than one way.
struct OperatorDecision {
  std::string_view computation, instr;
  const Metadata* metadata = nullptr;
  int num_operands = 0;
  std::vector<Candidate> candidates;  // priced
  size_t chosen = 0;
};

// Takes what is cheapest, and keeps what was decided. Names and shardings live as long as the
// module's context.
class DecisionLog : public Decider {
 public:
  size_t choose(const Instr& instr, absl::Span<const Candidate> candidates) override;
  void after_layouts(PartitionState& state, const CompletedLayouts& completed) override;

  const std::vector<LayoutDecision>& layouts() const { return layouts_; }
  const std::vector<OperatorDecision>& operators() const { return operators_; }
  // As docs/deciding.md says.
  nlohmann::ordered_json to_json(const Module& places) const;

 protected:
  void keep(const Instr& instr, absl::Span<const Candidate> candidates, size_t chosen);

 private:
  std::vector<LayoutDecision> layouts_;
  std::vector<OperatorDecision> operators_;
};

// Decides as a file says that a DecisionLog wrote and somebody may have edited: layouts that it
// does not list are completion's, operators that it does not list take what is cheapest. Throws
// Error with its place for an entry that does not apply.
class DecisionReplay : public DecisionLog {
 public:
  DecisionReplay(std::string file, std::string text);
  size_t choose(const Instr& instr, absl::Span<const Candidate> candidates) override;
  bool lay_out(PartitionState& state) override;
  void finish() override;

 private:
  struct Entry {
    JsonText::Pointer at;
    std::string operands, results;  // of the chosen candidate
    bool used = false;
  };
  Entry read_operator(const JsonText::Pointer& at) const;

  JsonText json_;
  absl::flat_hash_map<std::string, Entry> operators_;
};

}  // namespace gspmd
