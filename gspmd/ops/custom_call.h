#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "gspmd/ops/op_def.h"

namespace gspmd {

// How custom-calls of one target may be split: the rule of a call, in the arena's memory. The call
// then runs on shards, with local shapes and otherwise as it is; it never sees padding, so
// dimensions are split evenly or not at all.
//
// Targets without a rule are opaque: every operand is gathered, every device makes the call. Known
// from the start are targets that are element-wise or the identity, and TopK.
using CustomRule = std::function<const Rule*(const Instr& call, Arena& arena)>;

// Gives the calls of a target a rule, in all modules of the context; before anything asks for it. A
// later one replaces an earlier one, also one known from the start.
void set_custom_rule(Context& context, std::string_view target, CustomRule rule);
// The same from a text, see rule_from_text:
//   set_custom_rule(context, "my_attention", "b s h d, b t h d, b t h d -> b s h d");
// Calls that it does not fit are errors with their place, once the rule is asked for.
void set_custom_rule(Context& context, std::string_view target, std::string text);

// Whether somebody knows a rule of this custom-call's target.
bool has_custom_rule(const Instr& call);

// Whether the calls of a target take padded shards: those known from the start do, as their
// elements (TopK: rows) do not look at each other. One's own rules split evenly only.
bool bears_padding(const Instr& call);

// Reads "a b, b c -> a c": one name (letter or word) for each dimension of each operand and result
// (tuples: of each leaf), `_` for one that may not be split. Names that only operands have are
// summed over: each shard's result is a partial sum. Names that only results have are not split: a
// call does not know which part it makes. Throws Error where the text does not fit the
// instruction.
const Rule* rule_from_text(const Instr& instr, std::string_view text, Arena& arena);

// The same as Shardy spells it, on a call's frontend attribute xla.sdy.sharding_rule:
// #sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=8, j=16, k=8} reduction={j}>. Such a rule
// goes before one for the target.
const Rule* rule_from_sdy(const Instr& call, std::string_view text, Arena& arena);
inline constexpr std::string_view kSdyRule = "xla.sdy.sharding_rule";
// Whether the call itself has one. Then its attributes and shapes do not say its rule.
bool has_own_rule(const Instr& call);

// The versions of the interface between runtime and callee, by the number that StableHLO has for
// them: "API_VERSION_TYPED_FFI" is 4. The first, 1, has no name.
std::string_view api_version_named(int64_t number);
int64_t number_of_api_version(std::string_view name);

// True for targets that only carry annotations and are the identity on values.
bool is_annotation_target(std::string_view target);

}  // namespace gspmd
