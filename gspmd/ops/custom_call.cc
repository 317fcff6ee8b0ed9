#include "gspmd/ops/custom_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "gspmd/ops/shape_checks.h"

namespace gspmd {
namespace {

const Rule* pointwise(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  r.pointwise();
  return r.build();
}

// All dimensions but the last are batch.
const Rule* batch_but_last(const Instr& instr, Arena& arena) {
  RuleBuilder r(instr, arena);
  Shape s = instr.operand(0)->shape;
  for (int d = 0; d + 1 < s.rank(); ++d) r.parallel({d}, d);
  return r.build();
}

const Rule* opaque(const Instr& instr, Arena& arena) { return RuleBuilder(instr, arena).build(); }

const Rule* rule(const Instr& instr, Arena& arena) {
  CustomRule known = custom_rule(instr.attrs<CustomCallAttrs>().target);
  return (known != nullptr ? known : opaque)(instr, arena);
}

struct Target {
  std::string_view name;
  CustomRule rule;
};
constexpr Target kTargets[] = {
    {"Sharding", pointwise},
    {"xla.sdy.FuncResultSharding", pointwise},
    {"xla.sdy.PropagationBarrier", pointwise},
    {"annotate_device_placement", pointwise},
    {"MoveToHost", pointwise},
    {"MoveToDevice", pointwise},
    {"X64Combine", pointwise},
    {"X64SplitLow", pointwise},
    {"X64SplitHigh", pointwise},
    {"mhlo.erf", pointwise},
    {"mhlo.acos", pointwise},
    {"mhlo.sinh", pointwise},
    {"TopK", batch_but_last},
};

std::vector<std::vector<std::string>> tensors_of(const std::string& text) {
  std::vector<std::vector<std::string>> out;
  std::stringstream tensors(text);
  for (std::string one; std::getline(tensors, one, ',');) {
    std::stringstream words(one);
    out.emplace_back();
    for (std::string word; words >> word;) out.back().push_back(word);
  }
  return out;
}

constexpr Field kFields[] = {
    field<&CustomCallAttrs::window>("window", FieldKind::kWindow),
    field<&CustomCallAttrs::conv_dims>("dim_labels", FieldKind::kConvDimsPointer),
    field<&CustomCallAttrs::feature_groups>("feature_group_count", FieldKind::kInt),
    field<&CustomCallAttrs::batch_groups>("batch_group_count", FieldKind::kInt),
    field<&CustomCallAttrs::operand_precision>("operand_precision", FieldKind::kRaw),
    field<&CustomCallAttrs::padding_type>("padding_type", FieldKind::kRaw),
    required(field<&CustomCallAttrs::target>("custom_call_target", FieldKind::kString)),
    field<&CustomCallAttrs::operand_layout_constraints>("operand_layout_constraints", FieldKind::kRaw),
    field<&CustomCallAttrs::has_side_effect>("custom_call_has_side_effect", FieldKind::kBool),
    field<&CustomCallAttrs::literal>("literal", FieldKind::kRaw),
    field<&CustomCallAttrs::output_to_operand_aliasing>("output_to_operand_aliasing", FieldKind::kRaw),
    field<&CustomCallAttrs::schedule>("schedule", FieldKind::kRaw),
    field<&CustomCallAttrs::api_version>("api_version", FieldKind::kRaw),
};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

CustomRule custom_rule(std::string_view target) {
  for (const Target& t : kTargets) {
    if (t.name == target) return t.rule;
  }
  return nullptr;
}

bool is_annotation_target(std::string_view target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding";
}

const Rule* rule_from_text(const Instr& instr, std::string_view text, Arena& arena) {
  size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) {
    throw Error(fmt::format("the rule \"{}\" has no ->", text), "write it as \"a b, b c -> a c\"");
  }
  auto tensors = tensors_of(std::string(text.substr(0, arrow)));
  auto results = tensors_of(std::string(text.substr(arrow + 2)));
  if (static_cast<int>(tensors.size()) != instr.num_operands()) {
    throw Error(fmt::format("the rule \"{}\" has {} operands, the call has {}", text, tensors.size(), instr.num_operands()));
  }
  tensors.insert(tensors.end(), results.begin(), results.end());
  RuleBuilder r(instr, arena);
  std::map<std::string, FactorId> factors;
  for (size_t t = 0; t < tensors.size(); ++t) {
    for (size_t d = 0; d < tensors[t].size(); ++d) {
      auto [it, is_new] = factors.try_emplace(tensors[t][d], 0);
      if (is_new) {
        Factor f;
        f.size = t < static_cast<size_t>(instr.num_operands()) ? instr.operand(static_cast<int>(t))->shape.dim(static_cast<int>(d)) : 1;
        bool in_result = std::any_of(results.begin(), results.end(), [&](const auto& words) {
          return std::find(words.begin(), words.end(), tensors[t][d]) != words.end();
        });
        if (!in_result) f.kind = FactorKind::kReduce;
        if (!in_result) f.combiner = Combiner::kSum;
        it->second = r.add(f);
      }
      r.place(it->second, static_cast<int>(t), static_cast<int64_t>(d));
    }
  }
  return r.build();
}

extern const OpDef kCustomCallDef = {.opcode = Opcode::kCustomCall,
                                     .name = "custom-call",
                                     .min_operands = 0,
                                     .max_operands = -1,
                                     .attrs = AttrsKind::kCustomCallAttrs,
                                     .fields = kFields,
                                     .called = kCalled,
                                     .called_list = "called_computations",
                                     .rule = rule};

}  // namespace gspmd
