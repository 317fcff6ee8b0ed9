#include "gspmd/engine/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/engine/choices.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/engine/wide.h"

namespace gspmd {
namespace {

Value value_of(Shape s, absl::Span<const Buffer> leaves, size_t* at) {
  if (!s.is_tuple()) return leaves[(*at)++];
  std::vector<Value> parts;
  for (Shape e : s.elements()) parts.push_back(value_of(e, leaves, at));
  return Value::tuple(std::move(parts));
}

// Whether results agree with a reference, all of them together.
class Judge : public ChoiceJudge {
 public:
  explicit Judge(const std::vector<std::optional<Comparison>>& comparisons)
      : comparisons_(comparisons) {}

  Deviation deviation(const std::vector<Buffer>& reference) override {
    Deviation d;
    for (size_t k = 0; k < reference.size(); ++k) {
      if (comparisons_[k]) comparisons_[k]->add_deviation(reference[k], &d);
    }
    return d;
  }

  double change(const std::vector<Buffer>& a, const std::vector<Buffer>& b) override {
    double largest = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      if (comparisons_[k]) largest = std::max(largest, comparisons_[k]->change(a[k], b[k]));
    }
    return largest;
  }

 private:
  const std::vector<std::optional<Comparison>>& comparisons_;
};

class Checker {
 public:
  Checker(const CheckInput& in, const RunOptions& o) : in_(in), o_(o) {}

  CheckReport run() {
    std::vector<Buffer> inputs =
        in_.inputs.empty() ? make_inputs(in_.original, in_.seed) : in_.inputs;
    GSPMD_CHECK(inputs.size() == in_.parameters.size(), "as many inputs as parameter leaves");
    std::vector<Buffer> one = reference(inputs, false, nullptr);
    reference_ = reference(inputs, true, nullptr);
    std::vector<std::vector<Buffer>> many = partitioned(inputs);
    std::vector<Shape> shapes;
    for_each_leaf(in_.original.entry()->root()->shape, [&](Shape s, int) { shapes.push_back(s); });
    differing_.assign(shapes.size(), -1);
    comparisons_.resize(shapes.size());
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (!shapes[k].is_array()) continue;
      std::vector<Buffer> blocks;
      for (auto& device : many) blocks.push_back(std::move(device[k]));
      Buffer whole = assemble(blocks, in_.results[k], shapes[k].dims(), &differing_[k]);
      comparisons_[k].emplace(one[k], std::move(whole), reference_[k]);
    }
    many.clear();
    CheckReport report;
    report.results = results(shapes);
    if (!report.agrees() && replicas_agree()) explain(inputs, shapes, &report);
    return report;
  }

 private:
  std::vector<ResultCheck> results(const std::vector<Shape>& shapes) const {
    std::vector<ResultCheck> out;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (!comparisons_[k]) continue;
      ResultCheck r;
      r.shape = shapes[k];
      r.sharding = in_.results[k];
      r.differing_replica = differing_[k];
      comparisons_[k]->compare(reference_[k], &r);
      if (r.differing_replica >= 0) r.agrees = false;
      out.push_back(r);
    }
    return out;
  }

  bool replicas_agree() const {
    return std::all_of(differing_.begin(), differing_.end(), [](int64_t d) { return d < 0; });
  }

  // Tries near ties the other way.
  void explain(const std::vector<Buffer>& inputs, const std::vector<Shape>& shapes,
               CheckReport* report) {
    const ReferenceRun run = [&](bool wide, ChoiceObserver* observer) {
      return reference(inputs, wide, observer);
    };
    std::optional<std::vector<NearTie>> ties = find_near_ties(run, memory_limit(o_) / 4);
    if (!ties) return;
    report->near_ties = static_cast<int64_t>(ties->size());
    Judge judge(comparisons_);
    Decided decided = decide_otherwise(run, &judge, *ties, reference_);
    report->runs = decided.runs;
    if (!decided.agrees) return;
    reference_ = std::move(decided.reference);
    report->explained = std::count_if(report->results.begin(), report->results.end(),
                                      [](const ResultCheck& r) { return !r.agrees; });
    report->results = results(shapes);
    for (const NearTie& t : decided.ties) {
      report->decided.push_back(
          {describe(*t.place.instr), t.nudge.element, t.nudge.from, t.nudge.to});
    }
  }

  // The original program. With manual regions every device of the mesh runs it, holding whole
  // values outside of them.
  std::vector<Buffer> reference(const std::vector<Buffer>& inputs, bool wide,
                                ChoiceObserver* observer) {
    Program program(in_.original);
    for (const auto& [i, b] : in_.boundaries) program.boundaries.emplace(i, b);
    RunOptions o = o_;
    o.wide = wide;
    o.observer = observer;
    if (in_.boundaries.empty()) o.num_devices = 1;
    std::vector<Buffer> leaves = inputs;
    if (wide) {
      for (Buffer& b : leaves) b = widen(b);
    }
    std::vector<std::vector<Value>> arguments(static_cast<size_t>(o.num_devices),
                                              arguments_of(in_.original, leaves));
    std::vector<Value> results = gspmd::run(program, std::move(arguments), o);
    std::vector<Buffer> out;
    flatten(results[0], &out);
    return out;
  }

  std::vector<std::vector<Buffer>> partitioned(const std::vector<Buffer>& inputs) {
    Program program(in_.partitioned);
    std::vector<std::vector<Buffer>> leaves(static_cast<size_t>(o_.num_devices));
    for (size_t k = 0; k < inputs.size(); ++k) {
      std::vector<Buffer> blocks = blocks_of(inputs[k], in_.parameters[k]);
      for (size_t d = 0; d < leaves.size(); ++d) leaves[d].push_back(blocks[d]);
    }
    std::vector<std::vector<Value>> arguments;
    for (auto& l : leaves) arguments.push_back(arguments_of(in_.partitioned, l));
    std::vector<Value> results = gspmd::run(program, std::move(arguments), o_);
    std::vector<std::vector<Buffer>> out(results.size());
    for (size_t d = 0; d < results.size(); ++d) flatten(results[d], &out[d]);
    return out;
  }

  const CheckInput& in_;
  const RunOptions& o_;
  std::vector<Buffer> reference_;                       // result leaves
  std::vector<std::optional<Comparison>> comparisons_;  // of those that are arrays
  std::vector<int64_t> differing_;                      // replicas, as ResultCheck has it
};

std::string decisions(const CheckReport& r) {
  std::string out;
  for (const DecidedOtherwise& d : r.decided) {
    out +=
        fmt::format("decided otherwise: {}: operand element {} is {:.9g}, {:.3g} from the bound\n",
                    d.instr, d.element, d.value, std::abs(d.value - d.bound));
  }
  return out;
}

}  // namespace

void flatten(const Value& v, std::vector<Buffer>* out) {
  if (!v.is_tuple) {
    out->push_back(v.array);
    return;
  }
  for (const Value& e : v.elements) flatten(e, out);
}

std::vector<Value> arguments_of(const Module& m, absl::Span<const Buffer> leaves) {
  std::vector<Value> out;
  size_t at = 0;
  for (const Instr* p : m.entry()->params()) out.push_back(value_of(p->shape, leaves, &at));
  return out;
}

bool CheckReport::agrees() const {
  return std::all_of(results.begin(), results.end(), [](const ResultCheck& r) { return r.agrees; });
}

std::string CheckReport::to_text(bool all) const {
  std::string out;
  size_t wrong = 0, exact = 0;
  for (size_t k = 0; k < results.size(); ++k) {
    const ResultCheck& r = results[k];
    wrong += !r.agrees;
    exact += r.exact;
    if (r.agrees && !all) continue;
    out += fmt::format("result {} {} {}: ", k, to_string(r.shape), to_string(r.sharding));
    if (r.differing_replica >= 0) {
      out += fmt::format("DIFFERS: device {} does not hold what its replicas hold\n",
                         r.differing_replica);
    } else if (r.exact) {
      out += "equal bit for bit\n";
    } else {
      out += fmt::format("{} at element {}: {} for {} (off by {:.3g}, allowed {:.3g})\n",
                         r.agrees ? "agrees, worst" : "DIFFERS", r.worst_element, r.got, r.expected,
                         r.worst, r.allowed);
    }
  }
  out += decisions(*this);
  if (wrong == 0) {
    out += fmt::format("agrees: {} results, {} of them bit for bit", results.size(), exact);
    if (!decided.empty()) {
      out += fmt::format(
          "; {} of them agree with the reference after {} of its comparisons that lie "
          "within rounding were decided otherwise; no element was left out",
          explained, decided.size());
    }
    return out;
  }
  out += fmt::format("DIFFERS: {} of {} results", wrong, results.size());
  if (near_ties > 0) {
    out += fmt::format("; {} comparisons lie within rounding: in {} runs none explained it",
                       near_ties, runs);
  }
  return out;
}

CheckReport check(const CheckInput& input, const RunOptions& options) {
  return Checker(input, options).run();
}

}  // namespace gspmd
