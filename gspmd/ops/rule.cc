#include "gspmd/ops/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "gspmd/base/check.h"

namespace gspmd {
namespace {

std::string letter(int n) {
  if (n < 26) return std::string(1, static_cast<char>('a' + n));
  if (n < 52) return std::string(1, static_cast<char>('A' + n - 26));
  return fmt::format("<{}>", n);
}

std::string kind_text(const Factor& f) {
  std::string extra = f.needs_handler ? ", by handler" : "";
  switch (f.kind) {
    case FactorKind::kParallel:
      return "parallel" + extra;
    case FactorKind::kReduce:
      return fmt::format("reduce({}{})", to_string(f.combiner), extra);
    case FactorKind::kWindow:
      return (f.scatters ? "window(scatters)" : "window") + extra;
    case FactorKind::kIndexed:
      return (f.combiner == Combiner::kNone ? "indexed"
                                            : fmt::format("indexed({})", to_string(f.combiner))) +
             extra;
    case FactorKind::kPermute:
      return "permute" + extra;
    case FactorKind::kWhole:
      return "whole" + extra;
  }
  return "";
}

// Letters in the order in which factors first appear, so that rules read as einsums: "ab,bc->ac".
std::vector<std::string> letters_of(const Rule& rule) {
  std::vector<std::string> letters(rule.num_factors());
  int next = 0;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (int d = 0; d < rule.rank(t); ++d) {
      for (FactorId f : rule.dim(t, d)) {
        if (letters[f].empty()) letters[f] = letter(next++);
      }
    }
  }
  return letters;
}

}  // namespace

int Rule::dim_of(int tensor, FactorId f, int* place) const {
  for (int d = 0; d < rank(tensor); ++d) {
    absl::Span<const FactorId> factors = dim(tensor, d);
    for (size_t k = 0; k < factors.size(); ++k) {
      if (factors[k] != f) continue;
      if (place != nullptr) *place = static_cast<int>(k);
      return d;
    }
  }
  return -1;
}

std::string Rule::to_string() const {
  std::vector<std::string> letters = letters_of(*this);
  std::string out;
  auto append_tensor = [&](int t) {
    for (int d = 0; d < rank(t); ++d) {
      absl::Span<const FactorId> factors = dim(t, d);
      if (factors.empty()) out += '_';
      if (factors.size() > 1) out += '(';
      for (FactorId f : factors) out += letters[f];
      if (factors.size() > 1) out += ')';
    }
  };
  for (int t = 0; t < num_tensors(); ++t) {
    if (t == num_operands_) out += "->";
    if (t > 0 && t != num_operands_) out += ',';
    append_tensor(t);
  }
  std::vector<std::string> kinds;
  for (int f = 0; f < num_factors(); ++f) {
    if (factor(f).kind == FactorKind::kParallel && !factor(f).needs_handler) continue;
    kinds.push_back(fmt::format("{}: {}", letters[f], kind_text(factor(f))));
  }
  std::sort(kinds.begin(), kinds.end());
  for (size_t k = 0; k < kinds.size(); ++k) out += (k == 0 ? " | " : ", ") + kinds[k];
  return out;
}

RuleBuilder::RuleBuilder(const Instr& instr, Arena& arena)
    : instr_(instr), arena_(arena), num_operands_(instr.num_operands()) {
  uint32_t dims = 0;
  auto add_tensor = [&](Shape s) {
    tensors_.push_back(s);
    tensor_begin_.push_back(dims);
    if (s.is_array()) dims += static_cast<uint32_t>(s.rank());
  };
  for (const Instr* o : instr.operands) add_tensor(o->shape);
  for_each_leaf(instr.shape, [&](Shape leaf, int) { add_tensor(leaf); });
  tensor_begin_.push_back(dims);
}

FactorId RuleBuilder::add(const Factor& factor) {
  GSPMD_CHECK(factors_.size() < kMaxFactors, describe(instr_));
  factors_.push_back(factor);
  return static_cast<FactorId>(factors_.size() - 1);
}

void RuleBuilder::check_place(int tensor, int64_t d) const {
  GSPMD_CHECK(tensor >= 0 && tensor < static_cast<int>(tensors_.size()), describe(instr_));
  GSPMD_CHECK(tensors_[tensor].is_array() && d >= 0 && d < tensors_[tensor].rank(),
              describe(instr_));
}

void RuleBuilder::place(FactorId f, int tensor, int64_t d) {
  check_place(tensor, d);
  entries_.push_back({tensor_begin_[tensor] + static_cast<uint32_t>(d), f});
}

FactorId RuleBuilder::add_on(const Factor& factor, absl::Span<const int64_t> operand_dims,
                             int64_t result_dim) {
  absl::InlinedVector<std::pair<int, int64_t>, 6> places;
  int results = static_cast<int>(tensors_.size()) - num_operands_;
  for (size_t k = 0; k < operand_dims.size(); ++k) {
    if (operand_dims[k] != kNone) places.emplace_back(static_cast<int>(k), operand_dims[k]);
  }
  for (int i = 0; i < results && result_dim != kNone; ++i) {
    if (tensors_[result(i)].is_array()) places.emplace_back(result(i), result_dim);
  }
  GSPMD_CHECK(!places.empty(), describe(instr_));
  for (auto [t, d] : places) check_place(t, d);
  bool by_result = factor.kind == FactorKind::kWindow || factor.kind == FactorKind::kIndexed;
  auto [tensor, dim] = by_result ? places.back() : places.front();
  FactorId f = add(factor);
  int64_t size = factors_.back().size = tensors_[tensor].dim(static_cast<int>(dim));
  // Sides of windows differ, and bounds of dynamic dimensions may.
  bool may_differ = by_result;
  for (auto [t, d] : places) may_differ = may_differ || tensors_[t].is_dynamic();
  for (auto [t, d] : places) {
    entries_.push_back({tensor_begin_[t] + static_cast<uint32_t>(d), f});
    GSPMD_CHECK(may_differ || tensors_[t].dim(static_cast<int>(d)) == size, describe(instr_));
  }
  return f;
}

FactorId RuleBuilder::parallel(absl::Span<const int64_t> operand_dims, int64_t result_dim) {
  return add_on({.kind = FactorKind::kParallel}, operand_dims, result_dim);
}
FactorId RuleBuilder::reduce(absl::Span<const int64_t> operand_dims, Combiner combiner) {
  return add_on({.kind = FactorKind::kReduce, .combiner = combiner}, operand_dims, kNone);
}
FactorId RuleBuilder::window(absl::Span<const int64_t> operand_dims, int64_t result_dim,
                             const WindowDim& w) {
  return add_on({.kind = FactorKind::kWindow, .window = keep(w)}, operand_dims, result_dim);
}
FactorId RuleBuilder::indexed(absl::Span<const int64_t> operand_dims, int64_t result_dim) {
  return add_on({.kind = FactorKind::kIndexed}, operand_dims, result_dim);
}
FactorId RuleBuilder::permute(absl::Span<const int64_t> operand_dims, int64_t result_dim) {
  return add_on({.kind = FactorKind::kPermute}, operand_dims, result_dim);
}
FactorId RuleBuilder::whole(absl::Span<const int64_t> operand_dims, int64_t result_dim) {
  return add_on({.kind = FactorKind::kWhole, .propagates = false}, operand_dims, result_dim);
}

void RuleBuilder::pointwise() {
  int rank = tensors_[result()].rank();
  for (int d = 0; d < rank; ++d) {
    FactorId f = add({.size = tensors_[result()].dim(d)});
    for (int t = 0; t < static_cast<int>(tensors_.size()); ++t) {
      if (tensors_[t].is_array() && tensors_[t].rank() == rank) place(f, t, d);
    }
  }
  pointwise_factors_ = static_cast<size_t>(rank);
}

const Rule* RuleBuilder::build() {
  uint32_t dims = tensor_begin_.back();
  absl::Span<uint32_t> dim_begin = arena_.array<uint32_t>(dims + 1);
  absl::Span<FactorId> ids = arena_.array<FactorId>(entries_.size());
  // A stable counting sort: dim_begin first counts, then says where a dimension ends, then begins.
  for (const Entry& e : entries_) ++dim_begin[e.tensor_dim];
  for (uint32_t d = 1; d <= dims; ++d) dim_begin[d] += dim_begin[d - 1];
  for (size_t k = entries_.size(); k-- > 0;)
    ids[--dim_begin[entries_[k].tensor_dim]] = entries_[k].factor;
  Rule* rule = arena_.make<Rule>();
  rule->factors_ = arena_.copy(absl::Span<const Factor>(factors_));
  rule->tensor_begin_ = arena_.copy(absl::Span<const uint32_t>(tensor_begin_));
  rule->dim_begin_ = dim_begin;
  rule->factor_ids_ = ids;
  rule->num_operands_ = num_operands_;
  rule->is_parallel_ = std::all_of(factors_.begin(), factors_.end(),
                                   [](const Factor& f) { return f.kind == FactorKind::kParallel; });
  rule->is_pointwise_ = factors_.size() == pointwise_factors_;
  return rule;
}

}  // namespace gspmd
