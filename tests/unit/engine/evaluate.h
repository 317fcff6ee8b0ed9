#pragma once

#include <string>
#include <vector>

#include "gspmd/engine/kernel.h"

namespace gspmd::test {

// The leaves of the result of a program's entry computation, which has no parameters, by kernels
// alone. `wide`: as a reference run.
std::vector<Buffer> evaluate(const std::string& text, bool wide = false,
                             Backend* backend = nullptr);

// The results of one expression with nested operands, e.g. "f32[2] abs(f32[2] constant({-1, 2}))",
// or of lines that end with the ROOT's (nested operands have no attributes);
// `computations` stand before it.
std::vector<Buffer> evaluate_expression(const std::string& expression,
                                        const std::string& computations = "", bool wide = false);

// All elements equal bit for bit, NaN being equal to NaN, else a text that says where not.
std::string difference(const Buffer& actual, const Buffer& expected);

// Two expressions have the same results.
void expect_same(const std::string& actual, const std::string& expected,
                 const std::string& computations = "", bool wide = false);

// Floats may differ by `tolerance` relative to 1 + |expected|.
void expect_near(const std::string& actual, const std::string& expected, double tolerance,
                 const std::string& computations = "");

// Random elements: whole numbers in [-4, 4]; multiples of 1/8 for floats; the same for one seed.
Buffer random_buffer(ElementType type, absl::Span<const int64_t> dims, uint64_t seed);
std::vector<double> as_doubles(const Buffer& b);

}  // namespace gspmd::test
