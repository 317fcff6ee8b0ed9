#include "tests/unit/engine/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "gspmd/engine/numeric.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd::test {
namespace {

using Values = absl::flat_hash_map<const Instr*, std::vector<Buffer>>;

std::vector<Buffer> run(const Computation& computation, std::vector<std::vector<Buffer>> args,
                        const KernelContext& context);

ElementType wide_type(ElementType type) {
  if (is_float(type)) return ElementType::kF64;
  return is_complex(type) ? ElementType::kC128 : type;
}

Buffer constant(const Instr& instr, bool wide) {
  Buffer b = Buffer::from_literal(*instr.attrs<ConstantAttrs>().literal);
  if (!wide || wide_type(b.type()) == b.type()) return b;
  Buffer out(wide_type(b.type()), b.dims());
  convert_elements(b.type(), b.raw(), b.size(), out.type(), out.mutable_raw());
  return out;
}

std::vector<Buffer> run_instr(const Instr& instr, const Values& values,
                              const KernelContext& context) {
  std::vector<Buffer> operands;
  for (const Instr* o : instr.operands) {
    for (const Buffer& b : values.at(o)) operands.push_back(b);
  }
  switch (instr.opcode) {
    case Opcode::kConstant:
      return {constant(instr, context.wide)};
    case Opcode::kTuple:
      return operands;
    case Opcode::kGetTupleElement:
      return {operands.at(static_cast<size_t>(instr.attrs<IndexAttrs>().index))};
    default:
      break;
  }
  Kernel kernel = kernel_of(instr.opcode);
  if (kernel == nullptr) throw Error("no kernel for " + describe(instr));
  return kernel(instr, absl::MakeSpan(operands), context);
}

std::vector<Buffer> run(const Computation& computation, std::vector<std::vector<Buffer>> args,
                        const KernelContext& context) {
  Values values;
  for (const Instr* i : computation.instrs()) {
    values[i] = i->opcode == Opcode::kParameter
                    ? args.at(static_cast<size_t>(i->attrs<ParameterAttrs>().number))
                    : run_instr(*i, values, context);
  }
  return values.at(computation.root());
}

}  // namespace

std::vector<Buffer> evaluate(const std::string& text, bool wide, Backend* backend) {
  auto module = parse_hlo(std::make_shared<Context>(), text, "test.hlo");
  verify(*module);
  KernelContext context;
  context.wide = wide;
  context.backend = backend;
  context.call = [&](const Computation& c, absl::Span<const Buffer> args) {
    std::vector<std::vector<Buffer>> leaves;
    for (const Buffer& b : args) leaves.push_back({b});
    return run(c, std::move(leaves), context);
  };
  return run(*module->entry(), {}, context);
}

std::vector<Buffer> evaluate_expression(const std::string& expression,
                                        const std::string& computations, bool wide) {
  const bool is_body = expression.find("ROOT ") != std::string::npos;
  const std::string body = is_body ? expression : "ROOT r = " + expression;
  return evaluate("HloModule m\n\n" + computations + "\nENTRY e {\n  " + body + "\n}\n", wide);
}

std::string difference(const Buffer& actual, const Buffer& expected) {
  if (actual.type() != expected.type() || actual.dims() != expected.dims()) {
    return fmt::format("{}{} instead of {}{}", name_of(actual.type()), actual.dims(),
                       name_of(expected.type()), expected.dims());
  }
  const int width = storage_bytes(actual.type());
  const bool floats = is_float(actual.type()) || is_complex(actual.type());
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(actual.raw() + i * width, expected.raw() + i * width, width) == 0) continue;
    std::complex<double> a, e;
    if (floats) {
      load_as(is_complex(actual.type()) ? actual.type() : actual.type(), actual.raw() + i * width,
              1, is_complex(actual.type()) ? Lane::kC128 : Lane::kF64, &a);
      load_as(actual.type(), expected.raw() + i * width, 1,
              is_complex(actual.type()) ? Lane::kC128 : Lane::kF64, &e);
      auto same = [](double x, double y) {
        return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
      };
      if (same(a.real(), e.real()) && same(a.imag(), e.imag())) continue;
      return fmt::format("[{}]: {}+{}i instead of {}+{}i", i, a.real(), a.imag(), e.real(),
                         e.imag());
    }
    return fmt::format("[{}]: {} instead of {}", i, integer_element(actual.type(), actual.raw(), i),
                       integer_element(actual.type(), expected.raw(), i));
  }
  return "";
}

void expect_same(const std::string& actual, const std::string& expected,
                 const std::string& computations, bool wide) {
  SCOPED_TRACE(actual);
  std::vector<Buffer> a = evaluate_expression(actual, computations, wide);
  std::vector<Buffer> e = evaluate_expression(expected, "", wide);
  ASSERT_EQ(a.size(), e.size());
  for (size_t k = 0; k < a.size(); ++k) EXPECT_EQ(difference(a[k], e[k]), "") << "result " << k;
}

void expect_near(const std::string& actual, const std::string& expected, double tolerance,
                 const std::string& computations) {
  SCOPED_TRACE(actual);
  std::vector<Buffer> a = evaluate_expression(actual, computations);
  std::vector<Buffer> e = evaluate_expression(expected);
  ASSERT_EQ(a.size(), e.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].type(), e[k].type());
    ASSERT_EQ(a[k].dims(), e[k].dims());
    const std::vector<double> x = as_doubles(a[k]), y = as_doubles(e[k]);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(y[i])) {
        EXPECT_TRUE(std::isnan(x[i])) << "result " << k << " [" << i << "] is " << x[i];
      } else if (std::isinf(y[i])) {
        EXPECT_EQ(x[i], y[i]) << "result " << k << " [" << i << "]";
      } else {
        EXPECT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i])))
            << "result " << k << " [" << i << "]";
      }
    }
  }
}

Buffer random_buffer(ElementType type, absl::Span<const int64_t> dims, uint64_t seed) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<double> values(static_cast<size_t>(n));
  uint64_t state = seed * 2 + 1;
  for (double& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(state >> 40 & 0x3f) - 32;
    v = is_integer(type) ? std::floor(v / 8) : v / 8;
  }
  Buffer b(type, dims);
  convert_elements(ElementType::kF64, reinterpret_cast<const std::byte*>(values.data()), n, type,
                   b.mutable_raw());
  return b;
}

// Real and imaginary parts in turn for complex types.
std::vector<double> as_doubles(const Buffer& b) {
  if (is_complex(b.type())) {
    std::vector<double> out(static_cast<size_t>(2 * b.size()));
    load_as(b.type(), b.raw(), b.size(), Lane::kC128, out.data());
    return out;
  }
  std::vector<double> out(static_cast<size_t>(b.size()));
  convert_elements(b.type(), b.raw(), b.size(), ElementType::kF64,
                   reinterpret_cast<std::byte*>(out.data()));
  return out;
}

}  // namespace gspmd::test
