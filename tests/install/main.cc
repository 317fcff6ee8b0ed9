#include <cstdio>
#include <memory>
#include <string>

#include "gspmd/base/version.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"

// x is split by its rows over 8 devices, so each one's sum is partial: the program that comes out
// has one all-reduce.
constexpr char kProgram[] = R"(HloModule sum_all, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,4] parameter(0), sharding={devices=[8,1]<=[8]}
  zero = f32[] constant(0)
  ROOT sum = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
}
)";

int main() {
  auto context = std::make_shared<gspmd::Context>();
  auto module = gspmd::parse_hlo(context, kProgram, "sum_all.hlo");
  gspmd::verify(*module);
  gspmd::Compiled compiled = gspmd::partition(std::move(module), {});
  std::string text = gspmd::print_hlo(*compiled.module);
  std::printf("gspmd %s\n%s", std::string(gspmd::version()).c_str(), text.c_str());
  bool local = text.find("f32[8,4]") != std::string::npos;
  bool reduced = text.find("all-reduce(") != std::string::npos;
  return local && reduced ? 0 : 1;
}
