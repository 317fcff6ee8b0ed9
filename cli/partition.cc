#include "cli/compile.h"
#include "cli/program_io.h"

namespace gspmd::cli {

Command add_partition(CLI::App* app) {
  auto o = std::make_shared<Options>();
  CLI::App* command =
      app->add_subcommand("partition", "Complete the shardings and write the per-device program");
  add_input(command, o.get());
  add_output(command, o.get());
  add_partitioning(command, o.get());
  add_pipeline(command, o.get());
  command->footer(
      "Examples:\n"
      "  gspmd partition model.hlo -o model.spmd.hlo --time\n"
      "  gspmd partition model.hlo --mesh x=2,y=4 --annotate '0=[{x},{}]'\n"
      "  gspmd partition model.hlo --stop-after=reconcile   the global program with its reshards");
  return {command, [o] {
            Phases phases;
            Compiled c = compile(*o, &phases);
            write_program(*o, *c.module, &phases);
            write_stats(*o, c, phases);
            if (o->time) phases.report();
            return 0;
          }};
}

}  // namespace gspmd::cli
