#include "gspmd/report/memory.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gspmd/ops/aliasing.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/report/schedule.h"

namespace gspmd {
namespace {

constexpr int kNoParameter = -1;

struct Buffer {
  int64_t bytes = 0;
  int last = 0;                       // position of the last instruction that reads it
  int parameter_leaf = kNoParameter;  // of the computation, counted over all parameters
};

// What callers of a computation need to know.
struct Summary {
  int64_t peak = 0;       // of the buffers made in it
  int64_t body_peak = 0;  // as a loop's body: together with the parts of the state that it changes
  std::vector<int> root_parameter_leaf;  // for each leaf of the root: the parameter leaf that it
                                         // is, or kNoParameter
};
using Summaries = absl::flat_hash_map<const Computation*, Summary>;

// A loop's leaf that its body hands through is the same memory before and after.
bool is_invariant(const Summary& body, int leaf) {
  return leaf < static_cast<int>(body.root_parameter_leaf.size()) &&
         body.root_parameter_leaf[leaf] == leaf;
}

// The buffers of one computation.
class Liveness {
 public:
  Liveness(const Computation& c, absl::Span<Instr* const> order, const Summaries& callees,
           std::vector<int>* first_leaf)
      : order_(order), callees_(callees), first_leaf_(*first_leaf) {
    for (const Instr* p : c.params()) add_parameter(*p);
    for (int at = 0; at < size(); ++at) add(*order[at], at);
    absl::Span<const int> results = leaves(*c.root());
    results_.assign(results.begin(), results.end());
    for (int b : results_) buffers_[b].last = size();
  }

  int size() const { return static_cast<int>(order_.size()); }
  int num_parameter_leaves() const { return num_parameter_leaves_; }

  std::vector<int> root_parameter_leaf() const {
    std::vector<int> out;
    for (int b : results_) out.push_back(buffers_[b].parameter_leaf);
    return out;
  }
  void hold_to_end(int parameter_leaf) { buffers_[parameter_leaf].last = size(); }

  // Peak of the buffers made here and of those parameter leaves that are `counted`; the others
  // belong to the caller.
  int64_t peak(const std::vector<bool>& counted) const;

 private:
  absl::Span<const int> leaves(const Instr& i) const {
    return absl::MakeConstSpan(leaf_buffers_).subspan(first_leaf_[i.id], i.shape.num_leaves());
  }
  int new_buffer(int64_t bytes, int at, int parameter_leaf = kNoParameter) {
    buffers_.push_back({bytes, at, parameter_leaf});
    return static_cast<int>(buffers_.size()) - 1;
  }
  void add_parameter(const Instr& p);
  void add(const Instr& i, int at);
  void alias_callee_results(const Instr& i, absl::Span<int> result);
  using Counted = std::vector<bool>;
  bool dies_at(int buffer, int at, const Counted& counted) const;
  int64_t inside(const Instr& i, int at, const Counted& counted) const;
  int64_t overwritten(const Instr& i, int at, int64_t made, const Counted& counted) const;
  int64_t handed_over(const Instr& loop, int at, const Counted& counted) const;

  absl::Span<Instr* const> order_;
  const Summaries& callees_;
  std::vector<int>& first_leaf_;  // by instruction id: its first entry in leaf_buffers_
  std::vector<int> leaf_buffers_;
  std::vector<Buffer> buffers_;    // parameter leaves first
  std::vector<int> results_;       // buffers of the root's leaves
  std::vector<int> first_buffer_;  // by position: the first buffer made there
  int num_parameter_leaves_ = 0;
};

void Liveness::add_parameter(const Instr& p) {
  first_leaf_[p.id] = static_cast<int>(leaf_buffers_.size());
  for_each_leaf(p.shape, [&](Shape leaf, int) {
    leaf_buffers_.push_back(new_buffer(leaf.bytes(), -1, num_parameter_leaves_++));
  });
}

void Liveness::add(const Instr& i, int at) {
  first_buffer_.push_back(static_cast<int>(buffers_.size()));
  if (i.opcode == Opcode::kParameter) return;
  absl::InlinedVector<int, 4> result(i.shape.num_leaves(), -1);
  for (const LeafAlias& a : aliases_of(i))
    result[a.result_leaf] = leaves(*i.operand(a.operand))[a.operand_leaf];
  bool names_only = !result.empty() && std::find(result.begin(), result.end(), -1) == result.end();
  if (!names_only) {  // naming a part of a tuple reads nothing
    for (const Instr* o : i.operands) {
      for (int b : leaves(*o)) buffers_[b].last = std::max(buffers_[b].last, at);
    }
    alias_callee_results(i, absl::MakeSpan(result));
  }
  for_each_leaf(i.shape, [&](Shape leaf, int k) {
    if (result[k] < 0) result[k] = new_buffer(leaf.bytes(), at);
  });
  first_leaf_[i.id] = static_cast<int>(leaf_buffers_.size());
  leaf_buffers_.insert(leaf_buffers_.end(), result.begin(), result.end());
}

// Results of loops and calls that are a parameter of what they call.
void Liveness::alias_callee_results(const Instr& i, absl::Span<int> result) {
  if (i.opcode != Opcode::kWhile && i.opcode != Opcode::kCall) return;
  const Summary& callee = callees_.at(i.called.back());
  std::vector<int> operands;
  for (const Instr* o : i.operands)
    operands.insert(operands.end(), leaves(*o).begin(), leaves(*o).end());
  for (int k = 0; k < static_cast<int>(result.size()); ++k) {
    int from = callee.root_parameter_leaf[k];
    if (from != kNoParameter && (i.opcode == Opcode::kCall || from == k))
      result[k] = operands[from];
  }
}

// Whether nobody reads a buffer after position `at`, and it is not the caller's.
bool Liveness::dies_at(int buffer, int at, const Counted& counted) const {
  const Buffer& b = buffers_[buffer];
  return b.last == at && (b.parameter_leaf == kNoParameter || counted[b.parameter_leaf]);
}

// What runs inside an instruction, beyond what its operands hold.
int64_t Liveness::inside(const Instr& i, int at, const Counted& counted) const {
  int64_t most = 0;
  switch (i.opcode) {
    case Opcode::kWhile: {
      const Summary& body = callees_.at(i.called.back());
      int64_t state = 0;
      for_each_leaf(i.shape,
                    [&](Shape leaf, int k) { state += is_invariant(body, k) ? 0 : leaf.bytes(); });
      most = std::max(body.body_peak, callees_.at(i.called.front()).peak + state);
      return most - handed_over(i, at, counted);
    }
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kAsyncStart:
      for (const Computation* c : i.called) most = std::max(most, callees_.at(c).peak);
      return most;
    default:
      return 0;
  }
}

// Bytes of operands that a loop takes over as its state: those that nobody reads later.
int64_t Liveness::handed_over(const Instr& loop, int at, const Counted& counted) const {
  const Summary& body = callees_.at(loop.called.back());
  absl::flat_hash_set<int> taken;
  int64_t bytes = 0;
  absl::Span<const int> state = leaves(*loop.operand(0));
  for (int k = 0; k < static_cast<int>(state.size()); ++k) {
    if (is_invariant(body, k) || !dies_at(state[k], at, counted)) continue;
    if (taken.insert(state[k]).second) bytes += buffers_[state[k]].bytes;
  }
  return bytes;
}

// Bytes of an operand that dies here and whose place the result takes.
int64_t Liveness::overwritten(const Instr& i, int at, int64_t made, const Counted& counted) const {
  if (made == 0 || !may_overwrite_operand(i)) return 0;
  for (const Instr* o : i.operands) {
    for (int b : leaves(*o)) {
      if (buffers_[b].bytes == made && dies_at(b, at, counted)) return made;
    }
  }
  return 0;
}

int64_t Liveness::peak(const Counted& counted) const {
  std::vector<int64_t> freed(size() + 2, 0);  // [p + 1]: what dies at position p
  int64_t live = 0;
  for (const Buffer& b : buffers_) {
    if (b.parameter_leaf != kNoParameter && !counted[b.parameter_leaf]) continue;
    freed[b.last + 1] += b.bytes;
    if (b.parameter_leaf != kNoParameter) live += b.bytes;
  }
  int64_t most = live;
  live -= freed[0];
  for (int at = 0; at < size(); ++at) {
    const Instr& i = *order_[at];
    int64_t made = 0;
    int end = at + 1 < size() ? first_buffer_[at + 1] : static_cast<int>(buffers_.size());
    for (int b = first_buffer_[at]; b < end; ++b) made += buffers_[b].bytes;
    int64_t needed = i.opcode == Opcode::kWhile ? made - handed_over(i, at, counted)
                                                : made - overwritten(i, at, made, counted);
    most = std::max(most, live + std::max(needed, inside(i, at, counted)));
    live += made - freed[at + 1];
  }
  return most;
}

Summary summarize(const Liveness& l) {
  Summary s;
  s.root_parameter_leaf = l.root_parameter_leaf();
  std::vector<bool> counted(l.num_parameter_leaves(), false);
  s.peak = l.peak(counted);
  for (int leaf = 0; leaf < l.num_parameter_leaves(); ++leaf)
    counted[leaf] = !is_invariant(s, leaf);
  s.body_peak = l.peak(counted);
  return s;
}

int leaf_at(Shape s, absl::Span<const int64_t> index) {
  int leaf = 0;
  for (int64_t k : index) {
    for (int64_t i = 0; i < k; ++i) leaf += s.element(static_cast<int>(i)).num_leaves();
    s = s.element(static_cast<int>(k));
  }
  return leaf;
}

// By leaf of the entry's parameters: whether the program may reuse its memory.
std::vector<bool> donated_leaves(const Module& m, int num_leaves) {
  std::vector<int> first;
  int n = 0;
  for (const Instr* p : m.entry()->params()) {
    first.push_back(n);
    n += p->shape.num_leaves();
  }
  std::vector<bool> donated(num_leaves, false);
  auto add = [&](int64_t parameter, absl::Span<const int64_t> index) {
    donated[first[parameter] + leaf_at(m.entry()->params()[parameter]->shape, index)] = true;
  };
  for (const Alias& a : m.attrs.aliases) add(a.parameter, a.parameter_index);
  for (const Donor& d : m.attrs.donors) add(d.parameter, d.index);
  return donated;
}

using Orders = std::vector<std::vector<Instr*>> (*)(const Computation&);

std::vector<std::vector<Instr*>> as_they_stand(const Computation& c) { return {c.instrs()}; }

// Of a called computation, in the order in which a loop around it needs least.
Summary best_summary(const Computation& c, const Summaries& callees, Orders orders,
                     std::vector<int>* first_leaf) {
  std::optional<Summary> best;
  for (const std::vector<Instr*>& order : orders(c)) {
    Summary s = summarize(Liveness(c, order, callees, first_leaf));
    if (!best || s.body_peak < best->body_peak) best = std::move(s);
  }
  return *std::move(best);
}

int64_t peak_in(const Module& m, Orders orders) {
  std::vector<int> first_leaf(m.num_ids(), 0);
  Summaries summaries;
  for (const auto& c : m.computations()) {
    if (c.get() != m.entry()) summaries[c.get()] = best_summary(*c, summaries, orders, &first_leaf);
  }
  int64_t least = INT64_MAX;
  for (const std::vector<Instr*>& order : orders(*m.entry())) {
    Liveness entry(*m.entry(), order, summaries, &first_leaf);
    std::vector<bool> donated = donated_leaves(m, entry.num_parameter_leaves());
    for (int leaf = 0; leaf < entry.num_parameter_leaves(); ++leaf) {
      if (!donated[leaf]) entry.hold_to_end(leaf);
    }
    least = std::min(least, entry.peak(std::vector<bool>(entry.num_parameter_leaves(), true)));
  }
  return least;
}

}  // namespace

int64_t peak_bytes(const Module& m) { return peak_in(m, as_they_stand); }

int64_t least_peak_bytes(const Module& m) { return peak_in(m, memory_orders); }

}  // namespace gspmd
