// docs/ops.md is generated from the rules and the equivalence programs: GSPMD_UPDATE_DOCS=1 writes
// it, this test compares.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/partition/iteration.h"
#include "gspmd/sharding/refinement.h"
#include "tests/equivalence/programs.h"

namespace gspmd {
namespace {

struct Entry {
  std::string rule, native, gathers;
  int64_t partitionings = 0;
};

std::string_view reason(const Factor& f) {
  switch (f.kind) {
    case FactorKind::kWhole:
      return "every element depends on all of them";
    case FactorKind::kReduce:
      return "the parts of a joint or unknown reducer can not be combined";
    case FactorKind::kIndexed:
      return "windows at run-time indices straddle shards";
    default:
      return "its windows have no regular halo";
  }
}

// As Rule::to_string names them: in the order in which they first appear.
std::map<FactorId, std::string> letters_of(const Rule& rule) {
  std::map<FactorId, std::string> out;
  for (int t = 0; t < rule.num_tensors(); ++t) {
    for (int d = 0; d < rule.rank(t); ++d) {
      for (FactorId f : rule.dim(t, d)) out.try_emplace(f, 1, static_cast<char>('a' + out.size()));
    }
  }
  return out;
}

// Which of the rule's factors the partitioner splits, tried on two devices.
void describe_factors(const Instr& i, const Rule& rule, Entry* out) {
  ShardingPool pool;
  MeshRefinement refinement(&pool, 2, {});
  ShardingSpelling split;
  split.kind = ShardingSpelling::Kind::kTiled;
  split.tile_dims = {2};
  split.devices.reshape = {2};
  split.devices.perm = {0};
  refinement.note(split);
  refinement.finish();
  Iteration it{i, rule, refinement.mesh(), pool, {}};
  AxisList axis;
  axis.push_back(AxisId{0});
  std::map<FactorId, std::string> letters = letters_of(rule);
  std::map<std::string, std::string> gathered;  // reason: letters
  for (int f = 0; f < rule.num_factors(); ++f) {
    FactorId id = static_cast<FactorId>(f);
    if (can_split(it, id, axis, true)) {
      out->native += (out->native.empty() ? "" : " ") + letters[id];
    } else {
      gathered[std::string(reason(rule.factor(id)))] += letters[id];
    }
  }
  for (const auto& [why, which] : gathered)
    out->gathers += fmt::format("{}{}: {}", out->gathers.empty() ? "" : "; ", which, why);
}

void look(const Module& m, int64_t partitionings, std::map<Opcode, Entry>* entries) {
  RuleCache rules;
  std::map<Opcode, bool> counted;
  for (const auto& c : m.computations()) {
    for (const Instr* i : c->instrs()) {
      Entry& e = (*entries)[i->opcode];
      if (!counted[i->opcode]) e.partitionings += partitionings;
      counted[i->opcode] = true;
      bool reducer = c.get() != m.entry() && i->shape.is_array() && i->shape.rank() == 0;
      if (!e.rule.empty() || reducer || def(*i).traits.structural || def(*i).rule == nullptr)
        continue;
      const Rule& rule = rules.get(*i);
      e.rule = rule.to_string();
      describe_factors(*i, rule, &e);
    }
  }
}

// Operators whose examples are no programs of the equivalence suite.
constexpr const char* kMore = R"(HloModule more
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
ENTRY main {
  x = f32[4,6] parameter(0)
  y = s32[4,6] parameter(1)
  v1 = f32[4,6] acos(x)
  v2 = f32[4,6] acosh(x)
  v3 = f32[4,6] asin(x)
  v4 = f32[4,6] asinh(x)
  v5 = f32[4,6] atanh(x)
  v6 = f32[4,6] cbrt(x)
  v7 = f32[4,6] ceil(x)
  v8 = s32[4,6] count-leading-zeros(y)
  v9 = f32[4,6] cosine(x)
  v10 = f32[4,6] cosh(x)
  v11 = f32[4,6] erf(x)
  v12 = f32[4,6] exponential(x)
  v13 = f32[4,6] exponential-minus-one(x)
  v14 = f32[4,6] floor(x)
  v15 = f32[4,6] log(x)
  v16 = f32[4,6] log-plus-one(x)
  v17 = f32[4,6] logistic(x)
  v18 = s32[4,6] not(y)
  v19 = s32[4,6] popcnt(y)
  v20 = f32[4,6] round-nearest-afz(x)
  v21 = f32[4,6] round-nearest-even(x)
  v22 = f32[4,6] rsqrt(x)
  v23 = f32[4,6] sign(x)
  v24 = f32[4,6] sine(x)
  v25 = f32[4,6] sinh(x)
  v26 = f32[4,6] sqrt(x)
  v27 = f32[4,6] tan(x)
  v28 = f32[4,6] abs(x)
  v29 = f32[4,6] atan2(x, x)
  v30 = f32[4,6] minimum(x, x)
  v31 = f32[4,6] power(x, x)
  v32 = f32[4,6] remainder(x, x)
  v33 = s32[4,6] shift-left(y, y)
  v34 = s32[4,6] shift-right-arithmetic(y, y)
  v35 = s32[4,6] shift-right-logical(y, y)
  v36 = f32[4,6] copy(x)
  v37 = f32[4,6] all-reduce(x), replica_groups={{0,1}}, to_apply=add
  v38 = f32[8,6] all-gather(x), replica_groups={{0,1}}, dimensions={0}
  v39 = f32[2,6] reduce-scatter(x), replica_groups={{0,1}}, dimensions={0}, to_apply=add
  v40 = f32[4,6] all-to-all(x), replica_groups={{0,1}}, dimensions={0}
  v41 = f32[4,6] collective-permute(x), source_target_pairs={{0,1}}
  lo = f32[] constant(0)
  v42 = f32[4,6] rng(lo, lo), distribution=rng_uniform
  ROOT r = f32[4,6] tanh(x)
}
)";

std::string page() {
  std::map<Opcode, Entry> entries;
  for (const char* family : {"contractions", "movement", "reductions", "indexing", "others"}) {
    std::string path = fmt::format("tests/equivalence/programs/{}.txt", family);
    for (const auto& p : equivalence::read_programs(path)) {
      auto m = parse_hlo(std::make_shared<Context>(), p.text, p.opcode + ".hlo");
      std::vector<int> ranks;
      for (const Instr* q : m->entry()->params())
        ranks.push_back(q->shape.is_array() ? q->shape.rank() : -1);
      ranks.push_back(m->entry()->root()->shape.rank());
      look(*m, static_cast<int64_t>(equivalence::enumerate_cases(ranks).size()), &entries);
    }
  }
  look(*parse_hlo(std::make_shared<Context>(), kMore, "more.hlo"), 0, &entries);
  std::string out =
      "# Every operator\n\n"
      "Generated by `tests/equivalence/ops_page_test.cc` (`GSPMD_UPDATE_DOCS=1` rewrites it). "
      "*Rule*: of the\n"
      "first example among the equivalence programs, as an einsum (docs/operators.md). *Native*: "
      "the factors\n"
      "that are split in place. *Gathers*: those that are made whole first, and why. *Tests*: "
      "shardings of\n"
      "programs with this operator that are partitioned, run and compared by the equivalence "
      "suite.\n\n"
      "| operator | rule | native | gathers | tests |\n|---|---|---|---|---:|\n";
  for (int k = 0; k < kNumOpcodes; ++k) {
    Opcode op = static_cast<Opcode>(k);
    const Entry& e = entries[op];
    std::string rule = e.rule.empty() ? "" : fmt::format("`{}`", e.rule);
    size_t bar = 0;
    while ((bar = rule.find('|', bar)) != std::string::npos) {
      rule.replace(bar, 1, "\\|");
      bar += 2;
    }
    std::string what = def(op).traits.structural ? "taken apart, or handed through" : rule;
    if (what.empty()) what = "no example: by its rule, else gathered";
    out += fmt::format("| {} | {} | {} | {} | {} |\n", def(op).name, what, e.native, e.gathers,
                       e.partitionings == 0 ? "" : fmt::format("{}", e.partitionings));
  }
  return out;
}

TEST(OpsPage, IsWhatTheRulesSay) {
  std::string generated = page();
  if (std::getenv("GSPMD_UPDATE_DOCS") != nullptr) std::ofstream("docs/ops.md") << generated;
  std::stringstream written;
  written << std::ifstream("docs/ops.md").rdbuf();
  EXPECT_EQ(written.str(), generated)
      << "GSPMD_UPDATE_DOCS=1 gspmd_tests --gtest_filter='OpsPage*'";
}

}  // namespace
}  // namespace gspmd
