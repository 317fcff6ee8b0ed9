#include "gspmd/engine/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
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

// Bits of the significand, the leading one included.
int significand_bits(ElementType t) {
  switch (t) {
    case ElementType::kF64:
    case ElementType::kC128:
      return 53;
    case ElementType::kF32:
    case ElementType::kC64:
      return 24;
    case ElementType::kF16:
      return 11;
    case ElementType::kBF16:
      return 8;
    case ElementType::kF8E4M3FN:
    case ElementType::kF8E4M3:
    case ElementType::kF8E4M3FNUZ:
    case ElementType::kF8E4M3B11FNUZ:
    case ElementType::kF6E2M3FN:
      return 4;
    case ElementType::kF8E5M2:
    case ElementType::kF8E5M2FNUZ:
    case ElementType::kF6E3M2FN:
      return 3;
    case ElementType::kF8E3M4:
      return 5;
    case ElementType::kF4E2M1FN:
      return 2;
    default:
      return 1;
  }
}

// The distance of neighbouring numbers of a type at |x|.
double ulp(ElementType t, double x) {
  if (x == 0 || !std::isfinite(x)) return 0;
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, exponent - significand_bits(t));
}

// An array's numbers as doubles (both parts of complex ones).
std::vector<double> numbers(const Buffer& b) {
  Buffer w = widen(b);
  const double* p = reinterpret_cast<const double*>(w.raw());
  return {p, p + w.size() * (is_complex(w.type()) ? 2 : 1)};
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class Comparison {
 public:
  Comparison(const Buffer& one, const Buffer& wide, const Buffer& many, ResultCheck* out)
      : out_(*out) {
    out_.exact = one.bytes() == many.bytes() &&
                 std::memcmp(one.raw(), many.raw(), static_cast<size_t>(one.bytes())) == 0;
    if (out_.exact) return;
    if (is_float(one.type()) || is_complex(one.type())) {
      floats(one.type(), numbers(one), numbers(wide), numbers(many));
    } else {
      integers(one, wide, many);
    }
  }

 private:
  void floats(ElementType t, const std::vector<double>& one, const std::vector<double>& wide,
              const std::vector<double>& many) {
    double rounding = 0;  // of the one-device run
    for (size_t k = 0; k < one.size(); ++k) {
      double d = std::abs(one[k] - wide[k]);
      if (std::isfinite(d)) rounding = std::max(rounding, d);
    }
    for (size_t k = 0; k < one.size(); ++k) {
      if (same_number(many[k], one[k]) || same_number(many[k], wide[k])) continue;
      double allowed = 4 * rounding + 2 * ulp(t, wide[k]);
      double d = std::abs(many[k] - wide[k]);
      if (!(d <= allowed)) out_.agrees = false;
      if (!(d - allowed <= excess_)) note(k, d, allowed, many[k], wide[k]);
    }
  }

  void note(size_t k, double d, double allowed, double got, double expected) {
    excess_ = std::isnan(d) ? INFINITY : d - allowed;
    out_.worst = d;
    out_.allowed = allowed;
    out_.worst_element = static_cast<int64_t>(k);
    out_.got = got;
    out_.expected = expected;
  }

  void integers(const Buffer& one, const Buffer& wide, const Buffer& many) {
    size_t bytes = static_cast<size_t>(storage_bytes(one.type()));
    for (int64_t k = 0; k < one.size(); ++k) {
      const std::byte* got = many.raw() + k * static_cast<int64_t>(bytes);
      bool same = std::memcmp(got, one.raw() + k * static_cast<int64_t>(bytes), bytes) == 0 ||
                  std::memcmp(got, wide.raw() + k * static_cast<int64_t>(bytes), bytes) == 0;
      if (same) continue;
      if (out_.agrees)
        note(static_cast<size_t>(k), 1, 0, number(got, bytes),
             number(one.raw() + k * static_cast<int64_t>(bytes), bytes));
      out_.agrees = false;
    }
  }

  static double number(const std::byte* p, size_t bytes) {
    int64_t v = 0;
    std::memcpy(&v, p, std::min(bytes, sizeof(v)));
    return static_cast<double>(v);
  }

  ResultCheck& out_;
  double excess_ = -INFINITY;
};

class Checker {
 public:
  Checker(const CheckInput& in, const RunOptions& o) : in_(in), o_(o) {}

  CheckReport run() {
    std::vector<Buffer> inputs =
        in_.inputs.empty() ? make_inputs(in_.original, in_.seed) : in_.inputs;
    GSPMD_CHECK(inputs.size() == in_.parameters.size(), "as many inputs as parameter leaves");
    std::vector<Buffer> one = reference(inputs, false), wide = reference(inputs, true);
    std::vector<std::vector<Buffer>> many = partitioned(inputs);
    CheckReport report;
    std::vector<Shape> shapes;
    for_each_leaf(in_.original.entry()->root()->shape, [&](Shape s, int) { shapes.push_back(s); });
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (!shapes[k].is_array()) continue;
      ResultCheck r;
      r.shape = shapes[k];
      r.sharding = in_.results[k];
      std::vector<Buffer> blocks;
      for (auto& device : many) blocks.push_back(device[k]);
      Buffer whole = assemble(blocks, in_.results[k], shapes[k].dims(), &r.differing_replica);
      Comparison(one[k], wide[k], whole, &r);
      if (r.differing_replica >= 0) r.agrees = false;
      report.results.push_back(r);
    }
    return report;
  }

 private:
  // The original program. With manual regions every device of the mesh runs it, holding whole
  // values outside of them.
  std::vector<Buffer> reference(const std::vector<Buffer>& inputs, bool wide) {
    Program program(in_.original);
    for (const auto& [i, b] : in_.boundaries) program.boundaries.emplace(i, b);
    RunOptions o = o_;
    o.wide = wide;
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
};

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
  out += wrong == 0
             ? fmt::format("agrees: {} results, {} of them bit for bit", results.size(), exact)
             : fmt::format("DIFFERS: {} of {} results", wrong, results.size());
  return out;
}

CheckReport check(const CheckInput& input, const RunOptions& options) {
  return Checker(input, options).run();
}

}  // namespace gspmd
