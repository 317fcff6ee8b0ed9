// Reading annotations off instructions and writing them back.

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <charconv>

#include "gspmd/ir/frontend_attributes.h"
#include "gspmd/ops/custom_call.h"
#include "gspmd/propagate/propagate.h"
#include "gspmd/sharding/iota.h"

namespace gspmd {
namespace {

constexpr std::string_view kSdySharding = "xla.sdy.sharding";

// The sdy shardings of a context, read once each: by the text of all frontend attributes, whose
// memory is the context's.
struct SdyShardings {
  absl::flat_hash_map<std::string_view, std::unique_ptr<const ShardingSpelling>> by_text;
};

std::unique_ptr<const ShardingSpelling> read_sdy_sharding(const Instr& i) {
  std::optional<std::string> text = frontend_attribute(i, kSdySharding);
  if (!text) return nullptr;
  size_t position = 0;
  try {
    return std::make_unique<ShardingSpelling>(parse_sdy_sharding(*text, &position));
  } catch (const SpellingError& e) {
    throw Error(std::string(kSdySharding) + " of " + describe(i) + ": " + e.message, e.hint);
  }
}

const ShardingSpelling* sdy_spelling(const Instr& i) {
  if (i.extras == nullptr) return nullptr;
  std::string_view attributes = i.extras->frontend_attributes;
  if (attributes.find(kSdySharding) == std::string_view::npos) return nullptr;
  auto& known = i.parent->module().context().extension<SdyShardings>().by_text;
  auto at = known.find(attributes);
  if (at == known.end()) at = known.emplace(attributes, read_sdy_sharding(i)).first;
  const ShardingSpelling* s = at->second.get();
  if (s == nullptr) return nullptr;
  bool one =
      s->kind == ShardingSpelling::Kind::kTuple && s->elements.size() == 1 && !i.shape.is_tuple();
  return one ? &s->elements[0] : s;
}

// The spelling in effect, or null: sdy's says more (open dimensions) and wins. Lives as long as
// the context.
const ShardingSpelling* spelling_of(const Instr& i) {
  const ShardingSpelling* s = sdy_spelling(i);
  return s != nullptr ? s : i.annotation;
}

// backend_config="unspecified_dims=[0,1]" of a `Sharding` custom-call.
uint64_t unspecified_dims(const Instr& i) {
  if (i.opcode != Opcode::kCustomCall || i.extras == nullptr) return 0;
  std::string_view text = i.extras->backend_config;
  size_t at = text.find("unspecified_dims=[");
  if (at == std::string_view::npos) return 0;
  uint64_t dims = 0;
  const char* p = text.data() + at + 18;
  const char* end = text.data() + text.size();
  while (p < end && *p != ']') {
    int d = 0;
    auto [next, error] = std::from_chars(p, end, d);
    if (error != std::errc() || d < 0 || d > 63) return dims;
    dims |= uint64_t{1} << d;
    p = next < end && *next == ',' ? next + 1 : next;
  }
  return dims;
}

}  // namespace

std::vector<Annotation> annotations_of(const Instr& i, MeshRefinement& refinement) {
  if (i.annotation == nullptr && i.extras == nullptr) return {};
  const ShardingSpelling* s = spelling_of(i);
  if (s == nullptr) return {};
  std::vector<Shape> leaves;
  for_each_leaf(i.shape, [&](Shape leaf, int) { leaves.push_back(leaf); });
  std::vector<Annotation> out;
  bool tuple = s->kind == ShardingSpelling::Kind::kTuple;
  if (leaves.empty()) return {};  // a call without results may say where it runs
  if (tuple && s->elements.size() != leaves.size()) {
    throw Error(describe(i) + ": the sharding has " + std::to_string(s->elements.size()) +
                    " elements for " + std::to_string(leaves.size()) + " arrays",
                "give one sharding for each array of the tuple, depth first");
  }
  for (size_t k = 0; k < leaves.size(); ++k) {
    int rank = leaves[k].is_array() ? leaves[k].rank() : 0;
    const ShardingSpelling& one = tuple ? s->elements[k] : *s;
    if (!leaves[k].is_array()) {
      Annotation none;
      none.unknown = true;
      out.push_back(none);
      continue;
    }
    Annotation a = refinement.resolve(one, rank);
    a.open_dims |= unspecified_dims(i);
    out.push_back(a);
  }
  return out;
}

std::vector<std::pair<std::string, NamedMesh>> named_meshes_of(const Module& module) {
  std::vector<std::pair<std::string, NamedMesh>> out;
  if (module.attrs.frontend_attributes.find("xla.sdy.meshes") == std::string::npos) return out;
  std::optional<std::string> text = frontend_attribute(module, "xla.sdy.meshes");
  if (!text) return out;
  // {mesh = #sdy.mesh<["a"=2]>, other = ...}
  size_t at = text->find('{');
  at = at == std::string::npos ? 0 : at + 1;
  while (at < text->size()) {
    size_t equals = text->find('=', at);
    if (equals == std::string::npos) break;
    std::string name = text->substr(at, equals - at);
    name.erase(0, name.find_first_not_of(" ,\n\t"));
    name.erase(name.find_last_not_of(" \n\t") + 1);
    size_t position = text->find('#', equals);
    if (position == std::string::npos) break;
    try {
      out.emplace_back(name, parse_sdy_mesh(*text, &position));
    } catch (const SpellingError& e) {
      throw Error("xla.sdy.meshes: " + e.message, e.hint);
    }
    at = position;
    while (at < text->size() && ((*text)[at] == ',' || (*text)[at] == ' ' || (*text)[at] == '}'))
      ++at;
  }
  return out;
}

namespace {

// A dimension of several factors may need an axis in parts, cut where the dimension is.
void note_factors(const Rule& rule, MeshRefinement* refinement) {
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (int d = 0; d < rule.rank(t); ++d) {
      absl::Span<const FactorId> factors = rule.dim(t, d);
      for (size_t k = 1; k < factors.size(); ++k) {
        refinement->note_factor_boundary(rule.factor(factors[k - 1]).size,
                                         rule.factor(factors[k]).size);
      }
    }
  }
}

}  // namespace

void note_annotations(const Module& module, RuleCache& rules, MeshRefinement* refinement) {
  std::vector<std::pair<const ShardingSpelling*, int64_t>> spellings;  // and how often each stands
  absl::flat_hash_map<const ShardingSpelling*, size_t> place;
  std::vector<std::pair<const ShardingSpelling*, Shape>> arrays;
  for (const auto& c : module.computations()) {
    for (const Instr* i : c->instrs()) {
      const ShardingSpelling* s = spelling_of(*i);
      if (s == nullptr) continue;
      auto [at, is_new] = place.try_emplace(s, spellings.size());
      if (is_new) spellings.emplace_back(s, 0);
      ++spellings[at->second].second;
      if (i->shape.is_array()) arrays.emplace_back(s, i->shape.plain());
    }
  }
  for (const auto& [s, times] : spellings) refinement->note(*s, times);
  absl::flat_hash_set<std::pair<const ShardingSpelling*, Shape>> sized;
  for (const auto& [s, shape] : arrays) {
    if (sized.emplace(s, shape).second) refinement->note_sizes(*s, shape.dims());
  }
  for (const auto& c : module.computations()) {
    for (const Instr* i : c->instrs()) {
      if (i->opcode == Opcode::kReshape) note_factors(rules.get(*i), refinement);
    }
  }
  refinement->finish();
}

void write_annotations(Module* module, const ShardingTable& shardings) {
  Context& context = module->context();
  absl::flat_hash_map<Sharding, const ShardingSpelling*> spelled;
  const auto spelling = [&](Sharding s) {
    const ShardingSpelling*& memo = spelled[s];
    if (memo == nullptr) memo = context.spelling(spell(s));
    return memo;
  };
  for (const auto& c : module->computations()) {
    for (Instr* i : c->instrs()) {
      absl::Span<const Sharding> leaves = shardings.of(*i);
      if (leaves.empty()) continue;
      if (!i->shape.is_tuple()) {
        i->annotation = leaves[0] ? spelling(leaves[0]) : nullptr;
        continue;
      }
      ShardingSpelling tuple;
      tuple.kind = ShardingSpelling::Kind::kTuple;
      for (Sharding s : leaves) tuple.elements.push_back(s ? *spelling(s) : ShardingSpelling());
      i->annotation = context.spelling(tuple);
    }
  }
}

namespace {

bool is_named(const ShardingSpelling& s) {
  return s.kind == ShardingSpelling::Kind::kNamed ||
         std::any_of(s.elements.begin(), s.elements.end(), is_named);
}

int64_t largest_mesh(const Module& module) {
  int64_t n = module.attrs.num_partitions;
  for (const auto& [name, mesh] : named_meshes_of(module)) {
    std::vector<int64_t> sizes;
    for (const auto& axis : mesh.axes) sizes.push_back(axis.second);
    n = std::max(n, checked_product(sizes).value_or(1));
  }
  return n;
}

}  // namespace

void spell_annotations_in_hlo(Module* module) {
  std::vector<Instr*> named;
  for (const auto& c : module->computations()) {
    for (Instr* i : c->instrs()) {
      if (i->annotation != nullptr ? is_named(*i->annotation) : sdy_spelling(*i) != nullptr)
        named.push_back(i);
    }
  }
  if (named.empty()) return;
  MeshRefinement refinement(&module->context().shardings(), largest_mesh(*module),
                            named_meshes_of(*module));
  RuleCache rules;
  note_annotations(*module, rules, &refinement);
  for (Instr* i : named) {
    ShardingSpelling s;
    s.kind = ShardingSpelling::Kind::kTuple;
    try {
      for (const Annotation& a : annotations_of(*i, refinement)) {
        s.elements.push_back(a.sharding ? spell(a.sharding) : ShardingSpelling());  // of a token
        if (a.unknown) s.elements.back() = ShardingSpelling{ShardingSpelling::Kind::kUnknown};
      }
    } catch (Error& e) {
      throw error_at(*module, *i, e.message(), e.hint(), e.code());
    }
    i->annotation = module->context().spelling(i->shape.is_tuple() ? s : s.elements.at(0));
  }
}

int leaf_offset(Shape tuple, int index) {
  int at = 0;
  for (int k = 0; k < index; ++k) at += tuple.element(k).num_leaves();
  return at;
}

}  // namespace gspmd
