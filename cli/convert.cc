#include "cli/program_io.h"

namespace gspmd::cli {

Command add_convert(CLI::App* app) {
  auto o = std::make_shared<Options>();
  o->replica_groups = "as-written";
  CLI::App* command =
      app->add_subcommand("convert", "Read a program in one format, write it in another");
  add_input(command, o.get());
  add_output(command, o.get());
  command->footer(
      "Examples:\n"
      "  gspmd convert model.hlo -o -                print in the normal form of HLO text\n"
      "  gspmd convert - --no-metadata < model.hlo   without source places\n"
      "  gspmd convert model.pb -o model.hlo         from a message to text; .mlir too");
  return {command, [o] {
            Phases phases;
            auto module = read_program(*o, &phases);
            write_program(*o, *module, &phases);
            if (o->time) phases.report();
            return 0;
          }};
}

}  // namespace gspmd::cli
