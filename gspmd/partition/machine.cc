#include "gspmd/partition/machine.h"

#include <algorithm>
#include <cmath>

#include "gspmd/base/json_text.h"
#include "gspmd/ops/cost.h"

namespace gspmd {
namespace {

// A unit of a described machine is a femtosecond: a byte of the fastest memory is about 100.
constexpr double kUnit = 1e-15;

int64_t units(double seconds) { return std::max<int64_t>(1, std::llround(seconds / kUnit)); }

// What data sheets leave out: operators that are no dots run on the vector units, which have about
// a sixteenth of the matrix units' peak; they are bound by memory in any case.
constexpr double kVectorShare = 16;

FlopKind kind_of(ElementType t) {
  if (is_complex(t)) return bits_of(t) > 64 ? FlopKind::kF64 : FlopKind::kF32;
  int bits = bits_of(t);
  if (is_float(t)) {
    return bits > 32   ? FlopKind::kF64
           : bits > 16 ? FlopKind::kF32
           : bits > 8  ? FlopKind::kF16
           : bits > 4  ? FlopKind::kF8
                       : FlopKind::kF4;
  }
  return bits <= 8 ? FlopKind::kS8 : FlopKind::kF32;
}

// Peaks that are not said, from the next wider type (or for the widest the next narrower one).
std::array<double, kNumFlopKinds> filled(std::array<double, kNumFlopKinds> peak) {
  auto at = [&](FlopKind k) -> double& { return peak[static_cast<size_t>(k)]; };
  constexpr FlopKind kByWidth[] = {FlopKind::kF64, FlopKind::kF32, FlopKind::kF16, FlopKind::kF8,
                                   FlopKind::kF4};
  double known = 0;
  for (FlopKind k : kByWidth) {
    if (known == 0) known = at(k);
  }
  for (FlopKind k : kByWidth) known = at(k) = at(k) > 0 ? at(k) : known;
  if (at(FlopKind::kS8) == 0) at(FlopKind::kS8) = at(FlopKind::kF16);
  if (at(FlopKind::kElementwise) == 0)
    at(FlopKind::kElementwise) = at(FlopKind::kF16) / kVectorShare;
  return peak;
}

int64_t sixteenths(double value, double of) { return std::llround(16 * value / of); }

constexpr std::pair<std::string_view, FlopKind> kPeakNames[] = {
    {"elementwise", FlopKind::kElementwise},
    {"f64", FlopKind::kF64},
    {"f32", FlopKind::kF32},
    {"bf16", FlopKind::kF16},
    {"f8", FlopKind::kF8},
    {"f4", FlopKind::kF4},
    {"s8", FlopKind::kS8},
};

using Pointer = JsonText::Pointer;

MachineFacts::Link read_link(const JsonText& json, const Pointer& at, bool has_devices) {
  MachineFacts::Link link;
  has_devices ? json.check_members(at, {"devices", "gb_per_s", "latency_us"})
              : json.check_members(at, {"gb_per_s", "latency_us"});
  link.gb_per_s = json.positive(at / "gb_per_s");
  link.latency_us = json.positive(at / "latency_us");
  if (json.value().contains(at / "devices"))
    link.devices = static_cast<int64_t>(json.positive(at / "devices"));
  return link;
}

void read_peaks(const JsonText& json, MachineFacts* facts) {
  Pointer at("/peak_tflops");
  json.check_members(at, {"elementwise", "f64", "f32", "bf16", "f8", "f4", "s8"});
  bool any_float = false;
  for (const auto& [name, kind] : kPeakNames) {
    Pointer peak = at / std::string(name);
    if (!json.value().contains(peak)) continue;
    facts->peak_tflops[static_cast<size_t>(kind)] = json.positive(peak);
    any_float |= kind != FlopKind::kElementwise && kind != FlopKind::kS8;
  }
  if (!any_float)
    throw json.error(at, "no peak of a floating-point type", "give one, as in \"bf16\": 197");
}

}  // namespace

FlopKind flop_kind(const Instr& i) {
  CostClass c = cost_class(i);
  if (c != CostClass::kDot && c != CostClass::kConvolution) return FlopKind::kElementwise;
  FlopKind kind = FlopKind::kF4;
  int widest = 0;
  for (const Instr* o : i.operands.subspan(0, 2)) {
    if (bits_of(o->shape.type()) <= widest) continue;
    widest = bits_of(o->shape.type());
    kind = kind_of(o->shape.type());
  }
  return kind;
}

Machine machine_from(const MachineFacts& facts) {
  Machine m;
  m.name = facts.name;
  m.seconds_per_unit = kUnit;
  m.memory_bytes = static_cast<int64_t>(facts.memory_gb * 1e9);
  m.per_memory_byte = units(1e-9 / facts.memory_gb_per_s);
  std::array<double, kNumFlopKinds> peaks = filled(facts.peak_tflops);
  for (int k = 0; k < kNumFlopKinds; ++k) m.per_1024_flops[k] = units(1024e-12 / peaks[k]);
  double fastest = 0, shortest = INFINITY;
  auto note = [&](const MachineFacts::Link& l) {
    fastest = std::max(fastest, l.gb_per_s);
    shortest = std::min(shortest, l.latency_us);
  };
  for (const auto& l : facts.links) note(l);
  for (const auto& [name, l] : facts.axes) note(l);
  m.per_wire_byte = units(1e-9 / fastest);
  m.per_message = units(shortest * 1e-6);
  auto rate = [&](const MachineFacts::Link& l) {
    return LinkRate{sixteenths(fastest, l.gb_per_s), sixteenths(l.latency_us, shortest)};
  };
  for (const auto& l : facts.links)
    m.links.levels.push_back({l.devices > 0 ? l.devices : INT64_MAX, rate(l)});
  for (const auto& [name, l] : facts.axes) m.links.axes.emplace_back(name, rate(l));
  return m;
}

MachineFacts read_machine(std::string file, std::string text) {
  JsonText json(std::move(file), std::move(text));
  Pointer top;
  json.check_members(top, {"name", "peak_tflops", "memory_gb_per_s", "memory_gb", "links", "axes"});
  MachineFacts facts;
  facts.name = json.string(top / "name");
  read_peaks(json, &facts);
  facts.memory_gb_per_s = json.positive(top / "memory_gb_per_s");
  if (json.value().contains("memory_gb")) facts.memory_gb = json.positive(top / "memory_gb");
  size_t count = json.array(top / "links").size();
  if (count == 0) throw json.error(top / "links", "there is no link", "give at least one");
  for (size_t k = 0; k < count; ++k) {
    Pointer at = top / "links" / k;
    facts.links.push_back(read_link(json, at, true));
    int64_t before = k > 0 ? facts.links[k - 1].devices : 0, now = facts.links[k].devices;
    bool last = k + 1 == count;
    if ((now == 0 && !last) || (now > 0 && now <= before))
      throw json.error(at, "'devices' must grow from link to link; only the last may leave it out");
  }
  if (!json.value().contains("axes")) return facts;
  for (const auto& [name, value] : json.object(top / "axes").items())
    facts.axes.emplace_back(name, read_link(json, top / "axes" / name, false));
  return facts;
}

}  // namespace gspmd
