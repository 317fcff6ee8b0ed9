// Rules as Shardy spells them on a custom-call:
//   #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=16, k=8} reduction={j}, custom>
// A dimension of several factors lists them major to minor, [ij] or [iz_1].
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <vector>

#include "gspmd/ops/custom_call.h"

namespace gspmd {
namespace {

using Dim = std::vector<std::string>;
using Tensor = std::vector<Dim>;

struct Spelled {
  std::vector<Tensor> tensors;  // operands, then results
  size_t num_operands = 0;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, FactorKind> kinds;  // of those that are not parallel
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Spelled read() {
    Spelled s;
    take("#sdy.op_sharding_rule<");
    tensors(&s.tensors);
    s.num_operands = s.tensors.size();
    take("->");
    tensors(&s.tensors);
    sizes(&s.sizes);
    while (!try_take(">")) {
      if (try_take(",")) {
        take("custom");
        continue;
      }
      std::string kind = word();
      for (const std::string& f : list()) s.kinds[f] = kind_named(kind);
    }
    return s;
  }

 private:
  [[noreturn]] void fail(std::string_view wanted) const {
    throw Error(fmt::format("the sharding rule {}: expected {} at byte {}", text_, wanted, at_),
                "as in #sdy.op_sharding_rule<([i, j])->([i]) {i=4, j=2} reduction={j}>");
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool try_take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void take(std::string_view token) {
    if (!try_take(token)) fail(token);
  }

  std::string word() {
    skip();
    size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalpha(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    if (at_ == begin) fail("a word");
    return std::string(text_.substr(begin, at_ - begin));
  }

  int64_t number() {
    skip();
    int64_t n = 0;
    auto [end, fault] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
    if (fault != std::errc()) fail("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return n;
  }

  // i, or z_12 once the letters are used up.
  std::string factor() {
    skip();
    size_t begin = at_;
    if (at_ >= text_.size() || std::isalpha(static_cast<unsigned char>(text_[at_])) == 0)
      fail("a factor");
    ++at_;
    if (at_ < text_.size() && text_[at_] == '_') {
      ++at_;
      number();
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::vector<std::string> list() {
    std::vector<std::string> out;
    take("=");
    take("{");
    while (!try_take("}")) {
      out.push_back(factor());
      try_take(",");
    }
    return out;
  }

  void tensors(std::vector<Tensor>* out) {
    take("(");
    while (!try_take(")")) {
      take("[");
      out->emplace_back();
      while (!try_take("]")) {
        out->back().emplace_back();
        while (!try_take(",")) {
          out->back().back().push_back(factor());
          skip();
          if (at_ < text_.size() && text_[at_] == ']') break;
        }
      }
      try_take(",");
    }
  }

  void sizes(std::map<std::string, int64_t>* out) {
    if (!try_take("{")) return;
    while (!try_take("}")) {
      std::string f = factor();
      take("=");
      (*out)[f] = number();
      try_take(",");
    }
  }

  FactorKind kind_named(std::string_view kind) const {
    if (kind == "reduction") return FactorKind::kReduce;
    if (kind == "need_replication" || kind == "permutation") return FactorKind::kWhole;
    if (kind == "blocked_propagation") return FactorKind::kParallel;
    fail("reduction, need_replication, permutation or blocked_propagation");
  }

  std::string_view text_;
  size_t at_ = 0;
};

void check_fits(const Spelled& s, absl::Span<const Shape> tensors, size_t num_operands) {
  if (s.num_operands != num_operands || s.tensors.size() != tensors.size())
    throw Error("the sharding rule has another number of operands or results than the call");
  for (size_t t = 0; t < tensors.size(); ++t) {
    int rank = tensors[t].is_array() ? tensors[t].rank() : 0;
    if (static_cast<int>(s.tensors[t].size()) != rank) {
      throw Error(fmt::format("the sharding rule names {} dimensions of {}", s.tensors[t].size(),
                              gspmd::to_string(tensors[t])));
    }
    for (int d = 0; d < rank; ++d) {
      int64_t size = 1;
      for (const std::string& f : s.tensors[t][static_cast<size_t>(d)]) {
        auto at = s.sizes.find(f);
        if (at == s.sizes.end()) throw Error(fmt::format("the sharding rule: {} has no size", f));
        size *= at->second;
      }
      if (size == tensors[t].dim(d)) continue;
      throw Error(fmt::format("the sharding rule says {} elements for dimension {} of {}", size, d,
                              gspmd::to_string(tensors[t])));
    }
  }
}

// Whether a tensor from `begin` to `end` has the factor.
bool has(const Spelled& s, const std::string& factor, size_t begin, size_t end) {
  return std::any_of(s.tensors.begin() + static_cast<std::ptrdiff_t>(begin),
                     s.tensors.begin() + static_cast<std::ptrdiff_t>(end), [&](const Tensor& t) {
                       return std::any_of(t.begin(), t.end(), [&](const Dim& d) {
                         return std::find(d.begin(), d.end(), factor) != d.end();
                       });
                     });
}

}  // namespace

const Rule* rule_from_sdy(const Instr& call, std::string_view text, Arena& arena) {
  Spelled s = Reader(text).read();
  std::vector<Shape> tensors;
  for (const Instr* o : call.operands) tensors.push_back(o->shape);
  for_each_leaf(call.shape, [&](Shape leaf, int) { tensors.push_back(leaf); });
  check_fits(s, tensors, call.operands.size());
  if (s.sizes.size() > static_cast<size_t>(kMaxFactors))
    throw Error(fmt::format("the sharding rule has more than {} factors", kMaxFactors));
  RuleBuilder r(call, arena);
  std::map<std::string, FactorId> factors;
  for (const auto& [name, size] : s.sizes) {
    auto at = s.kinds.find(name);
    Factor f{.kind = at == s.kinds.end() ? FactorKind::kParallel : at->second, .size = size};
    if (f.kind == FactorKind::kReduce) f.combiner = Combiner::kSum;
    // What nobody reduces and only one side has is needed whole: nothing says how parts would do.
    bool one_side =
        !has(s, name, 0, s.num_operands) || !has(s, name, s.num_operands, tensors.size());
    if (f.kind == FactorKind::kParallel && one_side) f.kind = FactorKind::kWhole;
    if (f.kind == FactorKind::kWhole) f.propagates = false;
    factors[name] = r.add(f);
  }
  for (size_t t = 0; t < s.tensors.size(); ++t) {
    for (size_t d = 0; d < s.tensors[t].size(); ++d) {
      if (s.tensors[t][d].size() == 1 && tensors[t].dim(static_cast<int>(d)) == 1) continue;
      for (const std::string& f : s.tensors[t][d])
        r.place(factors.at(f), static_cast<int>(t), static_cast<int64_t>(d));
    }
  }
  return r.build();
}

}  // namespace gspmd
