#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/compile.h"
#include "cli/program_io.h"
#include "gspmd/report/explain.h"

namespace gspmd::cli {

Command add_explain(CLI::App* app) {
  auto o = std::make_shared<Options>();
  auto json = std::make_shared<bool>(false);
  auto most = std::make_shared<size_t>(30);
  CLI::App* command = app->add_subcommand("explain", "Why each collective is there");
  add_input(command, o.get());
  add_partitioning(command, o.get());
  command->add_flag("--json", *json, "one JSON array instead of a table");
  command->add_option("--most", *most, "lines of the table")->capture_default_str();
  command->footer("Example:\n  gspmd explain model.hlo --most 10");
  return {command, [o, json, most] {
            Phases phases;
            Compiled c = compile(*o, &phases);
            std::vector<ExplainedCollectives> lines = explain(*c.module);
            fmt::print("{}", *json ? to_json(lines).dump(2) + "\n" : to_table(lines, *most));
            return 0;
          }};
}

}  // namespace gspmd::cli
