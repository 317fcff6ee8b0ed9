#include "gspmd/partition/decisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gspmd/partition/layout_trial.h"
#include "gspmd/partition/manual.h"
#include "gspmd/sharding/layout_text.h"

namespace gspmd {
namespace {

using nlohmann::ordered_json;
using Pointer = JsonText::Pointer;

size_t cheapest(absl::Span<const Candidate> all) {
  auto less = [](const Candidate& a, const Candidate& b) { return a.units < b.units; };
  return static_cast<size_t>(std::min_element(all.begin(), all.end(), less) - all.begin());
}

std::string key_of(std::string_view computation, std::string_view name) {
  return fmt::format("{}/{}", computation, name);
}

// "[{x}, {}]; [{}, {}]"
std::string layouts_text(absl::Span<const Sharding> layouts) {
  std::string out;
  for (size_t k = 0; k < layouts.size(); ++k)
    out += (k > 0 ? "; " : "") + gspmd::to_string(layouts[k]);
  return out;
}

std::string operands_text(const Candidate& c, int num_operands) {
  return layouts_text(absl::MakeConstSpan(c.layouts).first(static_cast<size_t>(num_operands)));
}
std::string results_text(const Candidate& c, int num_operands) {
  return layouts_text(absl::MakeConstSpan(c.layouts).subspan(static_cast<size_t>(num_operands)));
}

ordered_json to_json(const Candidate& c, int num_operands) {
  return {{"operands", operands_text(c, num_operands)},
          {"results", results_text(c, num_operands)},
          {"units", c.units},
          {"wire_bytes", c.price.wire_bytes},
          {"messages", c.price.messages},
          {"memory_bytes", c.price.memory_bytes},
          {"flops", c.price.flops}};
}

}  // namespace

size_t DecisionLog::choose(const Instr& instr, absl::Span<const Candidate> candidates) {
  size_t chosen = cheapest(candidates);
  keep(instr, candidates, chosen);
  return chosen;
}

void DecisionLog::keep(const Instr& instr, absl::Span<const Candidate> candidates, size_t chosen) {
  if (candidates.size() < 2) return;
  operators_.push_back({instr.parent->name(),
                        instr.name,
                        instr.metadata,
                        instr.num_operands(),
                        {candidates.begin(), candidates.end()},
                        chosen});
}

// What each value's layout saves is what its neighbourhood would cost more if it alone went back.
void DecisionLog::after_layouts(PartitionState& state, const CompletedLayouts& completed) {
  Chooser chooser(state);
  for (Computation* c : partitioned_computations(state.module)) {
    Neighbourhood neighbourhood(state, chooser, *c);
    for (Instr* i : c->instrs()) {
      if (!i->shape.is_array()) continue;
      Sharding was = completed.get(*i), now = state.shardings.leaf(*i);
      if (was == now) continue;
      LayoutTrial back(neighbourhood);
      back.set(i, was);
      layouts_.push_back({c->name(), i->name, i->metadata, was, now, -back.gain()});
    }
  }
}

ordered_json DecisionLog::to_json(const Module& places) const {
  ordered_json layouts = ordered_json::array(), operators = ordered_json::array();
  for (const LayoutDecision& d : layouts_) {
    layouts.push_back({{"value", key_of(d.computation, d.value)},
                       {"place", places.model_place(d.metadata)},
                       {"layout", gspmd::to_string(d.chosen)},
                       {"completion", gspmd::to_string(d.completion)},
                       {"saved_units", d.saved_units}});
  }
  for (const OperatorDecision& d : operators_) {
    ordered_json candidates = ordered_json::array();
    for (const Candidate& c : d.candidates) candidates.push_back(gspmd::to_json(c, d.num_operands));
    operators.push_back({{"operator", key_of(d.computation, d.instr)},
                         {"place", places.model_place(d.metadata)},
                         {"chosen", d.chosen},
                         {"candidates", std::move(candidates)}});
  }
  return {{"layouts", std::move(layouts)}, {"operators", std::move(operators)}};
}

DecisionReplay::DecisionReplay(std::string file, std::string text)
    : json_(std::move(file), std::move(text)) {
  Pointer top;
  json_.check_members(top, {"layouts", "operators"});
  json_.array(top / "layouts");
  for (size_t k = 0; k < json_.array(top / "operators").size(); ++k) {
    Pointer at = top / "operators" / k;
    json_.check_members(at, {"operator", "place", "chosen", "candidates"});
    std::string name = json_.string(at / "operator");
    auto [entry, is_new] = operators_.try_emplace(name, read_operator(at));
    if (!is_new) throw json_.error(at, fmt::format("a second entry for operator '{}'", name));
  }
}

DecisionReplay::Entry DecisionReplay::read_operator(const Pointer& at) const {
  size_t count = json_.array(at / "candidates").size();
  const nlohmann::json& chosen = json_.value().at(at).value("chosen", nlohmann::json());
  if (!chosen.is_number_unsigned() || chosen.get<size_t>() >= count) {
    throw json_.error(at / "chosen", fmt::format("'chosen' is none of the {} candidates", count),
                      "their numbers count from 0");
  }
  Pointer candidate = at / "candidates" / chosen.get<size_t>();
  return {at, json_.string(candidate / "operands"), json_.string(candidate / "results")};
}

size_t DecisionReplay::choose(const Instr& instr, absl::Span<const Candidate> candidates) {
  auto entry = operators_.find(key_of(instr.parent->name(), instr.name));
  if (entry == operators_.end()) return DecisionLog::choose(instr, candidates);
  Entry& e = entry->second;
  e.used = true;
  for (size_t k = 0; k < candidates.size(); ++k) {
    const Candidate& c = candidates[k];
    if (operands_text(c, instr.num_operands()) != e.operands ||
        results_text(c, instr.num_operands()) != e.results)
      continue;
    keep(instr, candidates, k);
    return k;
  }
  throw json_.error(e.at / "chosen",
                    fmt::format("operator '{}' can not be partitioned so: operands {}, results {}",
                                entry->first, e.operands, e.results),
                    "the layouts around it are others now: remove the entry, and the cheapest way "
                    "is taken");
}

bool DecisionReplay::lay_out(PartitionState& state) {
  absl::flat_hash_map<std::string, Instr*> free;
  Chooser chooser(state);
  for (Computation* c : partitioned_computations(state.module)) {
    Neighbourhood neighbourhood(state, chooser, *c);
    for (Instr* i : c->instrs()) {
      if (neighbourhood.is_free(*i)) free.emplace(key_of(c->name(), i->name), i);
    }
  }
  Pointer list("/layouts");
  for (size_t k = 0; k < json_.array(list).size(); ++k) {
    Pointer at = list / k;
    json_.check_members(at, {"value", "place", "layout", "completion", "saved_units"});
    std::string name = json_.string(at / "value"), text = json_.string(at / "layout");
    auto value = free.find(name);
    if (value == free.end()) {
      throw json_.error(at / "value", fmt::format("'{}' is no value whose layout is free", name),
                        "parameters, results, loop states and annotated values keep theirs");
    }
    Sharding now = state.shardings.leaf(*value->second);
    std::optional<ShardingData> layout = parse_layout(text, state.mesh);
    if (!layout || static_cast<int>(layout->dims.size()) != now.rank() ||
        layout->manual != now->manual) {
      throw json_.error(at / "layout", fmt::format("'{}' is no layout of '{}'", text, name),
                        "write one like " + gspmd::to_string(now));
    }
    state.shardings.set(*value->second, state.module.context().shardings().intern(*layout));
  }
  return true;
}

void DecisionReplay::finish() {
  const Entry* first = nullptr;
  std::string name;
  for (const auto& [key, e] : operators_) {
    if (e.used || (first != nullptr && key > name)) continue;
    first = &e;
    name = key;
  }
  if (first == nullptr) return;
  throw json_.error(first->at / "operator",
                    fmt::format("there is no choice to make at operator '{}'", name),
                    "it may not be in the program, or its operands are laid out as it needs them: "
                    "remove the entry");
}

}  // namespace gspmd
