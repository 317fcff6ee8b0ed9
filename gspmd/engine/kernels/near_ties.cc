#include "gspmd/engine/kernels/near_ties.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "gspmd/engine/kernels/kernels.h"
#include "gspmd/engine/rounding.h"

namespace gspmd {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// a compared with b: the value for a, next to b, with which the result is another.
double other_side(Direction direction, double a, double b) {
  switch (direction) {
    case Direction::kEq:
    case Direction::kNe:
      return a == b ? std::nextafter(b, kInf) : b;
    case Direction::kLt:
    case Direction::kGe:
      return std::nextafter(b, a < b ? kInf : -kInf);
    case Direction::kGt:
    case Direction::kLe:
      return std::nextafter(b, a > b ? -kInf : kInf);
  }
  return b;
}

std::vector<Nudge> near_ties_of_compare(const Instr& i, absl::Span<const Buffer> own,
                                        absl::Span<const Buffer> reference, const KernelContext&) {
  std::vector<Nudge> out;
  const RoundedOperand x(0, own[0], reference[0]), y(1, own[1], reference[1]);
  if ((x.exact() && y.exact()) || x.size() != y.size()) return out;
  const std::vector<double> own_x = numbers(own[0]), own_y = numbers(own[1]);
  for (int64_t e = 0; e < x.size(); ++e) {
    const double a = x.at(e), b = y.at(e), apart = std::abs(a - b);
    const double allowed = x.allowed(e) + y.allowed(e);
    if (!(apart <= allowed)) continue;
    if (a == b && own_x[static_cast<size_t>(e)] == own_y[static_cast<size_t>(e)]) continue;
    const double to = other_side(i.attrs<CompareAttrs>().direction, a, b);
    out.push_back({0, e, a, to, apart / allowed});
  }
  return out;
}

// floor, ceil, round, sign, convert to integers: whatever gives something else a little above or
// below.
std::vector<Nudge> near_ties_of_step(const Instr& i, absl::Span<const Buffer> own,
                                     absl::Span<const Buffer> reference,
                                     const KernelContext& wide) {
  std::vector<Nudge> out;
  const RoundedOperand x(0, own[0], reference[0]);
  if (x.exact()) return out;
  const auto result_at = [&](double direction) {
    Buffer moved(ElementType::kF64, reference[0].dims());
    auto* to = moved.mutable_data<double>();
    for (int64_t e = 0; e < x.size(); ++e) to[e] = x.at(e) + direction * x.allowed(e);
    return kernel_of(i.opcode)(i, absl::MakeSpan(&moved, 1), wide)[0];
  };
  const Buffer here = result_at(0);
  const auto width = static_cast<int64_t>(storage_bytes(here.type()));
  for (double direction : {-1.0, 1.0}) {
    const Buffer there = result_at(direction);
    for (int64_t e = 0; e < x.size(); ++e) {
      const bool same = std::memcmp(here.raw() + e * width, there.raw() + e * width,
                                    static_cast<size_t>(width)) == 0;
      if (!same) out.push_back({0, e, x.at(e), x.at(e) + direction * x.allowed(e), 1});
    }
  }
  return out;
}

NearTies near_ties_of(const Instr& i) {
  if (i.operands.empty() || !i.operand(0)->shape.is_array()) return nullptr;
  const bool of_floats = is_float(i.operand(0)->shape.type());
  switch (i.opcode) {
    case Opcode::kCompare:
      return of_floats ? near_ties_of_compare : nullptr;
    case Opcode::kConvert:
      return of_floats && !is_float(i.shape.type()) && !is_complex(i.shape.type())
                 ? near_ties_of_step
                 : nullptr;
    case Opcode::kFloor:
    case Opcode::kCeil:
    case Opcode::kSign:
    case Opcode::kRoundNearestAfz:
    case Opcode::kRoundNearestEven:
      return of_floats ? near_ties_of_step : nullptr;
    case Opcode::kSort:
      return near_ties_of_sort;
    case Opcode::kTopK:
      return of_floats ? near_ties_of_sort : nullptr;
    case Opcode::kReduce:  // of one operand: sums, maxima
      return i.num_operands() > 2 && of_floats ? near_ties_of_reduce : nullptr;
    case Opcode::kSelectAndScatter:
      return of_floats ? near_ties_of_select_and_scatter : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

RoundedOperand::RoundedOperand(int operand, const Buffer& own, const Buffer& reference)
    : operand_(operand), type_(own.type()), own_(numbers(own)), reference_(numbers(reference)) {
  rounding_ = largest_distance(own_, reference_);
}

double RoundedOperand::allowed(int64_t i) const {
  return exact() ? 0 : tolerance(type_, at(i), rounding_);
}

bool RoundedOperand::nearly_equal(int64_t i, int64_t j) const {
  const bool equal = at(i) == at(j) && own_[static_cast<size_t>(i)] == own_[static_cast<size_t>(j)];
  return !exact() && !equal && std::abs(at(i) - at(j)) <= allowed(i) + allowed(j);
}

void RoundedOperand::add_crossings(int64_t i, int64_t j, std::vector<Nudge>* out) const {
  const double share = std::abs(at(i) - at(j)) / (allowed(i) + allowed(j));
  if (at(i) <= at(j)) out->push_back({operand_, i, at(i), std::nextafter(at(j), kInf), share});
  if (at(i) >= at(j)) out->push_back({operand_, i, at(i), std::nextafter(at(j), -kInf), share});
}

bool chooses(const Instr& i) { return near_ties_of(i) != nullptr; }

std::vector<Nudge> near_ties(const Instr& i, absl::Span<const Buffer> own,
                             absl::Span<const Buffer> reference, const KernelContext& wide) {
  const NearTies find = near_ties_of(i);
  if (find == nullptr) return {};
  for (size_t k = 0; k < own.size(); ++k) {
    if (own[k].size() != reference[k].size()) return {};
  }
  return find(i, own, reference, wide);
}

}  // namespace gspmd
