#include "gspmd/report/shardings.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace gspmd {
namespace {

struct Line {
  const Instr* instr;
  Shape shape;
  Sharding sharding;
};

int64_t local_bytes(const Line& l) {
  int64_t n = 1;
  for (int64_t d : l.sharding.local_dims(l.shape.dims())) n *= d;
  return (n * bits_of(l.shape.type()) + 7) / 8;
}

void append(std::string* out, const Line& l) {
  *out += fmt::format("{:40} {:26} {:>12}  {}\n", l.instr->name, to_string(l.shape), local_bytes(l),
                      to_string(l.sharding));
}

}  // namespace

std::string sharding_table(const Module& module, const ShardingTable& shardings, size_t most) {
  std::string out =
      fmt::format("{:40} {:26} {:>12}  {}\n", "parameter", "shape", "local bytes", "sharding");
  for (const Instr* p : module.entry()->params()) {
    for_each_leaf(p->shape, [&](Shape s, int k) {
      if (s.is_array()) append(&out, {p, s, shardings.leaf(*p, k)});
    });
  }
  std::vector<Line> values;
  for (const auto& c : module.computations()) {
    for (const Instr* i : c->instrs()) {
      if (i->opcode == Opcode::kParameter || !i->shape.is_array() || shardings.of(*i).empty()) {
        continue;
      }
      values.push_back({i, i->shape, shardings.leaf(*i)});
    }
  }
  std::stable_sort(values.begin(), values.end(),
                   [](const Line& a, const Line& b) { return a.shape.bytes() > b.shape.bytes(); });
  if (values.size() > most) values.resize(most);
  out += fmt::format("\n{:40} {:26} {:>12}  {}\n", "largest values", "shape", "local bytes",
                     "sharding");
  for (const Line& l : values) append(&out, l);
  return out;
}

}  // namespace gspmd
