#include <fmt/format.h>

#include "cli/annotate.h"
#include "cli/compile.h"
#include "cli/execution.h"
#include "cli/program_io.h"
#include "gspmd/engine/check.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/pass/boundaries.h"
#include "gspmd/pass/sdy_manual.h"

namespace gspmd::cli {

Command add_check(CLI::App* app) {
  auto o = std::make_shared<Options>();
  auto all = std::make_shared<bool>(false);
  CLI::App* command = app->add_subcommand(
      "check", "Partition, run on one device and on N virtual ones, and compare");
  add_input(command, o.get());
  add_partitioning(command, o.get());
  add_execution(command, o.get());
  command->add_flag("--all", *all, "a line for every result, not only for those that differ");
  command->footer(
      "Example:\n  gspmd check model.hlo --seed 7\nExit code 0 only where all results agree.");
  return {command, [o, all] {
            Phases phases;
            auto original = read_program(*o, &phases);
            annotate(*o, original.get());
            lower_sdy_manual(original.get());  // one device runs the borders one by one
            Compiled c = compile(*o, &phases);
            int64_t n = c.module->attrs.num_partitions;
            RunOptions run;
            run.num_devices = n;
            run.threads = o->threads;
            if (o->max_trips > 0) run.max_trips = o->max_trips;
            refuse_what_does_not_fit(*c.module, run);
            RunOptions reference = run;
            reference.num_devices = 1;
            reference.wide = true;
            refuse_what_does_not_fit(*original, reference);
            CheckInput in{*original,
                          *c.module,
                          c.parameter_shardings,
                          c.result_shardings,
                          manual_boundaries(*original, n),
                          o->seed,
                          {}};
            in.inputs = read_inputs(*o, *original);
            if (in.inputs.empty()) in.inputs = make_inputs(*original, o->seed, o->scale);
            CheckReport report = check(in, run);
            phases.end("run");
            fmt::print("{}\n", report.to_text(*all));
            if (o->time) phases.report();
            return report.agrees() ? 0 : 1;
          }};
}

}  // namespace gspmd::cli
