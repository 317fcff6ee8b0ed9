#include "tests/fuzz/judge.h"

#include "gspmd/engine/check.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/pass/pipeline.h"

namespace gspmd::fuzz {

std::string fault_of(const std::string& hlo, bool handlers, uint64_t seed) {
  try {
    auto original = parse_hlo(std::make_shared<Context>(), hlo, "random.hlo");
    auto program = parse_hlo(std::make_shared<Context>(), hlo, "random.hlo");
    verify(*original);
    verify(*program);
    CompileOptions options;
    options.partition.handlers = handlers;
    Compiled c = partition(std::move(program), options);
    verify(*c.module);
    CheckInput in{*original, *c.module, c.parameter_shardings, c.result_shardings, {}, seed, {}};
    RunOptions run;
    run.num_devices = c.module->attrs.num_partitions;
    run.threads = 1;
    CheckReport report = check(in, run);
    return report.agrees() ? "" : report.to_text(false);
  } catch (const Error& e) {
    return e.render();
  } catch (const std::exception& e) {
    return e.what();
  }
}

}  // namespace gspmd::fuzz
