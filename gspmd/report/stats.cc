#include "gspmd/report/stats.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "gspmd/ops/cost.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/ops/trip_count.h"
#include "gspmd/report/memory.h"

namespace gspmd {
namespace {

// How often a computation runs, and whether some loop around it has an unknown length.
struct Weight {
  double runs = 0;
  bool in_unknown_loop = false;
};

class Counter {
 public:
  explicit Counter(const Module& m) : m_(m) {}
  Stats run();

 private:
  void count(const Instr& i, const Weight& w);
  void count_loop(const Instr& loop, const Weight& w);
  void count_collective(const Instr& i, const Weight& w, std::string_view kind, double factor);
  void add_run(const Computation* callee, double runs, bool unknown) {
    Weight& w = weights_[callee];
    w.runs += runs;
    w.in_unknown_loop |= unknown;
  }

  const Module& m_;
  Stats stats_;
  absl::flat_hash_map<const Computation*, Weight> weights_;
};

constexpr std::string_view kStart = "-start";
constexpr std::string_view kDone = "-done";

bool ends_with(std::string_view s, std::string_view end) {
  return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}

// Devices in a group of a collective.
int64_t group_size(const Instr& i, int64_t num_devices) {
  const auto* a = i.attributes.get_if<CollectiveAttrs>();
  return a == nullptr || a->groups == nullptr || a->groups->group_size == 0 ? num_devices
                                                                            : a->groups->group_size;
}

// Bytes sent by a device for each operand byte.
double wire_factor(std::string_view kind, int64_t n) {
  double group = static_cast<double>(n);
  if (kind == "all-reduce") return 2 * (group - 1) / group;
  if (kind == "all-gather") return group - 1;
  if (kind == "collective-permute" || kind == "send") return 1;
  return (group - 1) / group;
}

void Counter::count_collective(const Instr& i, const Weight& w, std::string_view kind,
                               double factor) {
  double bytes = 0;
  for (const Instr* o : i.operands) bytes += static_cast<double>(o->shape.bytes());
  CollectiveStats& c = stats_.collectives[std::string(kind)];
  c.count += 1;
  c.executed += w.runs;
  c.bytes += bytes * w.runs;
  c.wire_bytes += bytes * w.runs * factor;
  stats_.each.push_back({&i, w.runs, bytes * w.runs, bytes * w.runs * factor});
  if (w.in_unknown_loop) stats_.unknown_loop_wire_bytes += bytes * w.runs * factor;
}

void Counter::count_loop(const Instr& loop, const Weight& w) {
  std::optional<int64_t> trips = trip_count(loop);
  ++(trips ? stats_.loops_known : stats_.loops_unknown);
  double runs = w.runs * static_cast<double>(trips.value_or(1));
  add_run(loop.called.back(), runs, w.in_unknown_loop || !trips);
  add_run(loop.called.front(), w.runs, w.in_unknown_loop);
}

void Counter::count(const Instr& i, const Weight& w) {
  CostClass cls = cost_class(i);
  if (i.opcode == Opcode::kWhile) return count_loop(i, w);
  if (cls == CostClass::kCaller || (i.opcode == Opcode::kCustomCall && !i.called.empty())) {
    for (const Computation* c : i.called) add_run(c, w.runs, w.in_unknown_loop);
    return;
  }
  std::string_view name = name_of(i.opcode);
  if (cls == CostClass::kCollective) {
    if (ends_with(name, kDone)) return;
    if (ends_with(name, kStart)) name.remove_suffix(kStart.size());
    count_collective(i, w, name, wire_factor(name, group_size(i, stats_.num_partitions)));
    return;
  }
  if (i.opcode == Opcode::kSend) count_collective(i, w, name, 1);
  Cost cost = cost_of(i);
  stats_.bytes_touched += w.runs * cost.bytes_touched;
  double flops = w.runs * cost.flops;
  switch (cls) {
    case CostClass::kDot:
      stats_.dot_flops += flops;
      break;
    case CostClass::kConvolution:
      stats_.convolution_flops += flops;
      break;
    case CostClass::kElementwise:
      stats_.elementwise_flops += flops;
      if (def(i).traits.transcendental) stats_.transcendentals += flops;
      break;
    default:
      stats_.other_flops += flops;
      break;
  }
}

// Computations that the entry reaches, callers before callees.
std::vector<const Computation*> reached(const Module& m) {
  absl::flat_hash_set<const Computation*> seen = {m.entry()};
  std::vector<const Computation*> order;
  for (auto c = m.computations().rbegin(); c != m.computations().rend(); ++c) {
    if (!seen.contains(c->get())) continue;
    order.push_back(c->get());
    for (const Instr* i : (*c)->instrs()) seen.insert(i->called.begin(), i->called.end());
  }
  return order;
}

Stats Counter::run() {
  stats_.num_partitions =
      m_.attrs.num_partitions > 1 ? m_.attrs.num_partitions : m_.attrs.replica_count;
  stats_.instructions = m_.num_instrs();
  weights_[m_.entry()].runs = 1;
  for (const Computation* c : reached(m_)) {
    Weight w = weights_[c];
    for (const Instr* i : c->instrs()) count(*i, w);
  }
  for (const auto& [kind, c] : stats_.collectives) {
    stats_.total_bytes += c.bytes;
    stats_.wire_bytes += c.wire_bytes;
  }
  stats_.peak_bytes = least_peak_bytes(m_);
  return std::move(stats_);
}

}  // namespace

Stats compute_stats(const Module& m) { return Counter(m).run(); }

}  // namespace gspmd
