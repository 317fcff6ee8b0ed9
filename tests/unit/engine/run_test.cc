// Virtual devices: collectives, loops of different lengths, deadlocks, errors, memory.

#include "gspmd/engine/run.h"

#include <gtest/gtest.h>

#include "gspmd/base/error.h"
#include "gspmd/engine/check.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {
namespace {

constexpr char kAdd[] =
    "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\n";

std::unique_ptr<Module> read(const std::string& text) {
  auto m = parse_hlo(std::make_shared<Context>(), text, "test.hlo");
  verify(*m);
  return m;
}

// Runs a program without parameters; each device's result leaf as integers.
std::vector<int32_t> run_s32(const std::string& text, int64_t devices, int threads) {
  auto m = read(text);
  Program program(*m);
  RunOptions o;
  o.num_devices = devices;
  o.threads = threads;
  std::vector<Value> results =
      run(program, std::vector<std::vector<Value>>(static_cast<size_t>(devices)), o);
  std::vector<int32_t> out;
  for (const Value& v : results) out.push_back(v.array.data<int32_t>()[0]);
  return out;
}

TEST(Run, SixtyFourDevicesOnOneThread) {
  std::string text = std::string("HloModule m, num_partitions=64\n") + kAdd +
                     "ENTRY e { p = u32[] partition-id()\n i = s32[] convert(p)\n"
                     "ROOT r = s32[] all-reduce(i), channel_id=1, replica_groups=[2,32]<=[64], "
                     "use_global_device_ids=true, to_apply=add }";
  std::vector<int32_t> sums = run_s32(text, 64, 1);
  for (int d = 0; d < 64; ++d) EXPECT_EQ(sums[d], d < 32 ? 31 * 16 : 31 * 16 + 32 * 32) << d;
  EXPECT_EQ(run_s32(text, 64, 2), sums);
}

// Device d goes round d times, each time meeting nobody; then all meet.
TEST(Run, LoopsOfDifferentLengths) {
  std::string text = std::string("HloModule m, num_partitions=4\n") + kAdd +
                     R"(
body { t = (s32[], s32[]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  one = s32[] constant(1)
  x = s32[] all-reduce(k), channel_id=1, replica_groups={{0},{1},{2},{3}}, use_global_device_ids=true, to_apply=add
  k1 = s32[] add(x, one)
  ROOT r = (s32[], s32[]) tuple(k1, n) }
cond { t = (s32[], s32[]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  ROOT c = pred[] compare(k, n), direction=LT }
ENTRY e { p = u32[] partition-id()
  n = s32[] convert(p)
  z = s32[] constant(0)
  t = (s32[], s32[]) tuple(z, n)
  w = (s32[], s32[]) while(t), condition=cond, body=body
  k = s32[] get-tuple-element(w), index=0
  ROOT r = s32[] all-reduce(k), channel_id=2, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add }
)";
  EXPECT_EQ(run_s32(text, 4, 1), (std::vector<int32_t>{6, 6, 6, 6}));
}

TEST(Run, DevicesThatWaitForEachOtherAreReported) {
  std::string text = std::string("HloModule m, num_partitions=2\n") + kAdd + R"(
yes { x = s32[] parameter(0)
  ROOT r = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
no { x = s32[] parameter(0)
  ROOT y = s32[] negate(x) }
ENTRY e { p = u32[] partition-id()
  i = s32[] convert(p)
  z = s32[] constant(0)
  c = pred[] compare(i, z), direction=EQ
  ROOT r = s32[] conditional(c, i, i), true_computation=yes, false_computation=no }
)";
  try {
    run_s32(text, 2, 2);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("1 of 2 devices wait for each other for ever"), std::string::npos)
        << e.message();
    EXPECT_NE(e.message().find("all-reduce"), std::string::npos) << e.message();
  }
}

TEST(Run, AnErrorOnADeviceEndsAll) {
  std::string text = std::string("HloModule m, num_partitions=2\n") + kAdd + R"(
ENTRY e { p = u32[] partition-id()
  i = s32[] convert(p)
  x = s32[] custom-call(i), custom_call_target="nobody_knows"
  ROOT r = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
)";
  try {
    run_s32(text, 2, 1);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("on device 0"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("nobody_knows"), std::string::npos) << e.message();
  }
}

TEST(Run, MemoryIsRefusedWithItsFigure) {
  auto m = read("HloModule m\nENTRY e { ROOT i = f32[1024,1024] iota(), iota_dimension=0 }");
  Program program(*m);
  RunOptions o;
  o.memory_limit = 1'000'000;
  try {
    run(program, {{}}, o);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("needs 0.00 GB"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace gspmd
