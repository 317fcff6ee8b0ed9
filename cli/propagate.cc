#include <fmt/format.h>

#include "cli/annotate.h"
#include "cli/compile.h"
#include "cli/program_io.h"
#include "gspmd/report/shardings.h"

namespace gspmd::cli {

Command add_propagate(CLI::App* app) {
  auto o = std::make_shared<Options>();
  CLI::App* command = app->add_subcommand(
      "propagate", "Complete the shardings: the same program with one on every instruction");
  add_input(command, o.get());
  add_output(command, o.get());
  add_partitioning(command, o.get());
  auto summary = std::make_shared<size_t>(0);
  command->add_option("--summary", *summary,
                      "print a table instead: parameters and this many of the largest values");
  command->footer("Example:\n  gspmd propagate model.hlo -o model.completed.hlo");
  return {command, [o, summary] {
            Phases phases;
            auto module = read_program(*o, &phases);
            annotate(*o, module.get());
            CompileOptions options = compile_options(*o);
            MeshRefinement refinement(&module->context().shardings(),
                                      num_partitions_of(*module, options.num_partitions),
                                      named_meshes_of(*module));
            RuleCache rules;
            note_annotations(*module, rules, &refinement);
            Propagation completed = propagate(*module, refinement, rules, options.propagate);
            phases.end("propagate");
            if (*summary > 0) {
              fmt::print("{}", sharding_table(*module, completed.shardings, *summary));
              return 0;
            }
            write_annotations(module.get(), completed.shardings);
            write_program(*o, *module, &phases);
            if (o->time) phases.report();
            return 0;
          }};
}

}  // namespace gspmd::cli
