// What could be split without communication, found without the rules: each element of each operand
// is changed on one device, and the elements of the result that change with it are collected. Where
// index i of a result dimension depends on index i of an operand dimension alone (for every operand
// that matters at all, or not on it), splitting these dimensions must cost no collective.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "gspmd/engine/check.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"
#include "gspmd/report/stats.h"
#include "tests/equivalence/programs.h"

namespace gspmd {
namespace {

using Index = std::vector<int64_t>;
using Pairs = std::set<std::pair<int64_t, int64_t>>;  // (operand element, result element)

std::vector<equivalence::Program> all_programs() {
  std::vector<equivalence::Program> out;
  for (const char* family : {"contractions", "movement", "reductions", "indexing", "others"}) {
    std::string path = fmt::format("tests/equivalence/programs/{}.txt", family);
    for (auto& p : equivalence::read_programs(path)) out.push_back(std::move(p));
  }
  return out;
}

std::unique_ptr<Module> parse(const equivalence::Program& p) {
  auto m = parse_hlo(std::make_shared<Context>(), p.text, p.opcode + ".hlo");
  verify(*m);
  return m;
}

Index index_of(int64_t element, absl::Span<const int64_t> dims) {
  Index out(dims.size());
  for (size_t d = dims.size(); d-- > 0; element /= dims[d]) out[d] = element % dims[d];
  return out;
}

Buffer result_of(const Program& program, const std::vector<Buffer>& inputs) {
  RunOptions o;
  o.threads = 1;
  std::vector<std::vector<Value>> arguments{arguments_of(program.module(), inputs)};
  return run(program, std::move(arguments), o)[0].array;
}

// `b` with one element one step up or down.
Buffer changed(const Buffer& b, int64_t element, int step) {
  Buffer out = b;
  size_t size = static_cast<size_t>(storage_bytes(b.type()));
  std::byte* at = out.mutable_raw() + element * static_cast<int64_t>(size);
  if (b.type() == ElementType::kF32) {
    float v = 0;
    std::memcpy(&v, at, size);
    v += static_cast<float>(step) * 7.5F;
    std::memcpy(at, &v, size);
  } else if (b.type() == ElementType::kPred) {
    *at ^= std::byte{1};
  } else {  // integers and 16-bit floats: the lowest bits
    int64_t v = 0;
    std::memcpy(&v, at, size);
    v = std::max<int64_t>(0, v + step);
    std::memcpy(at, &v, size);
  }
  return out;
}

class Dependence {
 public:
  explicit Dependence(const Module& m) : program_(m) {
    for (uint64_t seed : {1, 2, 3}) look(make_inputs(m, seed));
  }
  // Which (element of operand k, element of the result) go together.
  const Pairs& of(size_t operand) const { return pairs_.at(operand); }

 private:
  void look(const std::vector<Buffer>& inputs) {
    pairs_.resize(inputs.size());
    Buffer base = result_of(program_, inputs);
    size_t size = static_cast<size_t>(storage_bytes(base.type()));
    for (size_t k = 0; k < inputs.size(); ++k) {
      for (int64_t e = 0; e < inputs[k].size(); ++e) {
        for (int step : {-2, -1, 1, 2}) {
          std::vector<Buffer> other = inputs;
          other[k] = changed(inputs[k], e, step);
          Buffer now = result_of(program_, other);
          for (int64_t r = 0; r < base.size(); ++r) {
            int64_t at = r * static_cast<int64_t>(size);
            if (std::memcmp(base.raw() + at, now.raw() + at, size) != 0) pairs_[k].emplace(e, r);
          }
        }
      }
    }
  }

  Program program_;
  std::vector<Pairs> pairs_;
};

// The first dimension of the operand along which its elements only touch result elements of the
// same index along `result_dim`; -1: none.
int matching_dim(const Pairs& pairs, Shape operand, Shape result, int result_dim) {
  for (int d = 0; d < operand.rank(); ++d) {
    if (operand.dim(d) != result.dim(result_dim)) continue;
    bool alike = true;
    for (const auto& [e, r] : pairs) {
      alike = alike && index_of(e, operand.dims())[static_cast<size_t>(d)] ==
                           index_of(r, result.dims())[static_cast<size_t>(result_dim)];
    }
    if (alike) return d;
  }
  return -1;
}

std::string on_dim(Shape s, int dim, int64_t n) {
  std::string tiles;
  for (int d = 0; d < s.rank(); ++d)
    tiles += fmt::format("{}{}", d == 0 ? "" : ",", d == dim ? n : 1);
  return fmt::format("{{devices=[{}]<=[{}]}}", tiles, n);
}

void annotate(Instr* i, const std::string& sharding) {
  size_t position = 0;
  i->annotation = i->parent->module().context().spelling(parse_hlo_sharding(sharding, &position));
}

// Reviewed: dimensions that are independent and are gathered all the same, each with its reason.
const std::map<std::string, std::string>& exceptions() {
  static const auto* all = new std::map<std::string, std::string>{};
  return *all;
}

class IndependentDimension : public testing::TestWithParam<size_t> {};

TEST_P(IndependentDimension, CostsNothing) {
  static const std::vector<equivalence::Program> programs = all_programs();
  const equivalence::Program& p = programs[GetParam()];
  auto m = parse(p);
  const Computation& entry = *m->entry();
  Shape result = entry.root()->shape;
  Dependence dependence(*m);
  for (int d = 0; d < result.rank(); ++d) {
    int64_t n = result.dim(d) % 2 == 0 ? 2 : result.dim(d);
    if (n < 2) continue;
    std::vector<int> dims;
    bool independent = true;
    for (size_t k = 0; k < entry.params().size(); ++k) {
      const Pairs& pairs = dependence.of(k);
      int found = pairs.empty() ? -1 : matching_dim(pairs, entry.params()[k]->shape, result, d);
      dims.push_back(found);
      // An operand that every part of the result needs whole stays whole: a weight, an index.
      if (pairs.empty() || found >= 0) continue;
      std::set<std::pair<int64_t, int64_t>> parts;  // (operand element, result index along d)
      for (const auto& [e, r] : pairs)
        parts.emplace(e, index_of(r, result.dims())[static_cast<size_t>(d)]);
      std::set<int64_t> elements;
      for (const auto& [e, r] : pairs) elements.insert(e);
      independent &= parts.size() == elements.size() * static_cast<size_t>(result.dim(d));
    }
    bool any = std::any_of(dims.begin(), dims.end(), [](int k) { return k >= 0; });
    if (!independent || !any) continue;
    auto annotated = parse(p);
    for (size_t k = 0; k < dims.size(); ++k) {
      Instr* q = annotated->entry()->params()[k];
      if (dims[k] >= 0) annotate(q, on_dim(q->shape, dims[k], n));
    }
    annotate(annotated->entry()->root(), on_dim(result, d, n));
    CompileOptions options;
    options.num_partitions = n;
    Compiled c = partition(std::move(annotated), options);
    Stats stats = compute_stats(*c.module);
    std::string name = fmt::format("{}:{}", p.opcode, d);
    if (stats.wire_bytes > 0 && !exceptions().contains(name)) {
      ADD_FAILURE() << p.opcode << p.sizes << ": dimension " << d << " of the result is independent"
                    << " and costs " << stats.wire_bytes << " bytes\n"
                    << p.text << "\n"
                    << to_table(stats) << "\n"
                    << print_hlo(*c.module);
    }
  }
}

std::string name_of_program(const testing::TestParamInfo<size_t>& info) {
  const equivalence::Program p = all_programs()[info.param];
  std::string name = fmt::format("{}_{}{}", info.param, p.opcode, p.sizes);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Programs, IndependentDimension,
                         testing::Range<size_t>(0, all_programs().size()), name_of_program);

}  // namespace
}  // namespace gspmd
