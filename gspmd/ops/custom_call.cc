#include "gspmd/ops/custom_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "gspmd/ir/frontend_attributes.h"
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

using RuleFunction = const Rule* (*)(const Instr& instr, Arena& arena);
struct Target {
  std::string_view name;
  RuleFunction rule;
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
    {"chlo.erfc", pointwise},
    {"chlo.erf_inv", pointwise},
    {"chlo.lgamma", pointwise},
    {"chlo.digamma", pointwise},
    {"chlo.bessel_i1e", pointwise},
    {"chlo.next_after", pointwise},
    {"chlo.polygamma", pointwise},
    {"chlo.zeta", pointwise},
    {"TopK", batch_but_last},
};

// The rules that a context's user gave.
struct CustomRules {
  std::map<std::string, CustomRule, std::less<>> by_target;
};

const CustomRule* given_rule(const Instr& call) {
  const auto& given = call.parent->module().context().extension<CustomRules>().by_target;
  auto at = given.find(call.attrs<CustomCallAttrs>().target);
  return at == given.end() ? nullptr : &at->second;
}

RuleFunction known_rule(const Instr& call) {
  for (const Target& t : kTargets) {
    if (t.name == call.attrs<CustomCallAttrs>().target) return t.rule;
  }
  return nullptr;
}

const Rule* rule(const Instr& call, Arena& arena) {
  const CustomRule* given = given_rule(call);
  std::optional<std::string> own;
  if (has_own_rule(call)) own = frontend_attribute(call, kSdyRule);
  if (given == nullptr && !own) {
    RuleFunction known = known_rule(call);
    return known == nullptr ? opaque(call, arena) : known(call, arena);
  }
  try {
    return own ? rule_from_sdy(call, *own, arena) : (*given)(call, arena);
  } catch (const Error& e) {
    throw error_at(call.parent->module(), call, e.message(), e.hint(), e.code());
  }
}

// "a b, b c" is two tensors of two dimensions each. Empty text is one scalar, or no tensor where
// none is `wanted`.
std::vector<std::vector<std::string>> tensors_of(const std::string& text, int wanted) {
  std::vector<std::vector<std::string>> out;
  if (wanted == 0 && text.find_first_not_of(' ') == std::string::npos) return out;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(',', begin);
    std::stringstream words(text.substr(begin, end == std::string::npos ? end : end - begin));
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
    field<&CustomCallAttrs::operand_layout_constraints>("operand_layout_constraints",
                                                        FieldKind::kRaw),
    field<&CustomCallAttrs::has_side_effect>("custom_call_has_side_effect", FieldKind::kBool),
    field<&CustomCallAttrs::literal>("literal", FieldKind::kRaw),
    field<&CustomCallAttrs::output_to_operand_aliasing>("output_to_operand_aliasing",
                                                        FieldKind::kRaw),
    field<&CustomCallAttrs::schedule>("schedule", FieldKind::kRaw),
    field<&CustomCallAttrs::api_version>("api_version", FieldKind::kRaw),
};
constexpr std::string_view kCalled[] = {"to_apply"};

}  // namespace

void set_custom_rule(Context& context, std::string_view target, CustomRule rule) {
  context.extension<CustomRules>().by_target[std::string(target)] = std::move(rule);
}

void set_custom_rule(Context& context, std::string_view target, std::string text) {
  set_custom_rule(context, target, [text = std::move(text)](const Instr& call, Arena& arena) {
    return rule_from_text(call, text, arena);
  });
}

bool has_own_rule(const Instr& call) {
  return call.extras != nullptr &&
         call.extras->frontend_attributes.find(kSdyRule) != std::string_view::npos;
}

bool has_custom_rule(const Instr& call) {
  return has_own_rule(call) || given_rule(call) != nullptr || known_rule(call) != nullptr;
}

bool bears_padding(const Instr& call) {
  return !has_own_rule(call) && given_rule(call) == nullptr && known_rule(call) != nullptr;
}

namespace {
constexpr std::pair<int64_t, std::string_view> kApiVersions[] = {
    {2, "API_VERSION_STATUS_RETURNING"},
    {3, "API_VERSION_STATUS_RETURNING_UNIFIED"},
    {4, "API_VERSION_TYPED_FFI"},
};
}  // namespace

std::string_view api_version_named(int64_t number) {
  for (const auto& [known, name] : kApiVersions) {
    if (known == number) return name;
  }
  return "";
}

int64_t number_of_api_version(std::string_view name) {
  for (const auto& [number, known] : kApiVersions) {
    if (known == name) return number;
  }
  return 1;
}

bool is_annotation_target(std::string_view target) {
  return target == "Sharding" || target == "xla.sdy.FuncResultSharding";
}

namespace {

using Words = std::vector<std::vector<std::string>>;  // for each tensor, a name for each dimension

// A call's shard of a diagonal is no diagonal of shards.
void check_once(std::string_view text, const std::vector<std::string>& words, int d) {
  if (std::find(words.begin(), words.begin() + d, words[d]) == words.begin() + d) return;
  throw Error(fmt::format("the rule \"{}\" has {} twice in one tensor", text, words[d]),
              "`_` is a dimension that is not split");
}

// Sizes of the named factors; throws where the text does not fit the call's tensors.
std::map<std::string, int64_t> factor_sizes(std::string_view text, const Words& words,
                                            absl::Span<const Shape> tensors) {
  if (words.size() != tensors.size()) {
    throw Error(fmt::format("the rule \"{}\" has {} operands and results, the call has {}", text,
                            words.size(), tensors.size()));
  }
  std::map<std::string, int64_t> sizes;
  for (size_t t = 0; t < tensors.size(); ++t) {
    int rank = tensors[t].is_array() ? tensors[t].rank() : 0;
    if (static_cast<int>(words[t].size()) != rank) {
      throw Error(fmt::format("the rule \"{}\" names {} dimensions of {}", text, words[t].size(),
                              to_string(tensors[t])),
                  "one name for each dimension");
    }
    for (int d = 0; d < rank; ++d) {
      if (words[t][d] == "_") continue;
      check_once(text, words[t], d);
      auto [at, added] = sizes.try_emplace(words[t][d], tensors[t].dim(d));
      if (at->second == tensors[t].dim(d)) continue;
      throw Error(
          fmt::format("the rule \"{}\": {} has {} elements in one tensor and {} in {}", text,
                      words[t][d], at->second, tensors[t].dim(d), to_string(tensors[t])),
          "dimensions of one name have one size");
    }
  }
  if (sizes.size() > kMaxFactors) {
    throw Error(fmt::format("the rule \"{}\" has {} names", text, sizes.size()),
                fmt::format("{} are possible", kMaxFactors));
  }
  return sizes;
}

std::set<std::string> names_in(const Words& words) {
  std::set<std::string> names;
  for (const auto& tensor : words) names.insert(tensor.begin(), tensor.end());
  return names;
}

}  // namespace

const Rule* rule_from_text(const Instr& instr, std::string_view text, Arena& arena) {
  size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) {
    throw Error(fmt::format("the rule \"{}\" has no ->", text), "write it as \"a b, b c -> a c\"");
  }
  Words words = tensors_of(std::string(text.substr(0, arrow)), instr.num_operands());
  Words results = tensors_of(std::string(text.substr(arrow + 2)), instr.shape.num_leaves());
  std::set<std::string> given = names_in(words), kept = names_in(results);
  words.insert(words.end(), results.begin(), results.end());
  std::vector<Shape> tensors;
  for (const Instr* o : instr.operands) tensors.push_back(o->shape);
  for_each_leaf(instr.shape, [&](Shape leaf, int) { tensors.push_back(leaf); });
  RuleBuilder r(instr, arena);
  std::map<std::string, FactorId> factors;
  for (const auto& [name, size] : factor_sizes(text, words, tensors)) {
    if (!given.contains(name)) continue;  // the call would not know which part it is to make
    Factor sum{.kind = FactorKind::kReduce, .combiner = Combiner::kSum, .size = size};
    factors[name] = r.add(kept.contains(name) ? Factor{.size = size} : sum);
  }
  for (size_t t = 0; t < words.size(); ++t) {
    for (size_t d = 0; d < words[t].size(); ++d) {
      auto at = factors.find(words[t][d]);
      if (at != factors.end()) r.place(at->second, static_cast<int>(t), static_cast<int64_t>(d));
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
