#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/options.h"
#include "gspmd/base/check.h"
#include "gspmd/base/error.h"
#include "gspmd/base/version.h"

namespace gspmd::cli {
namespace {

// Exit codes: the input or the result is wrong, wrong usage, our own fault.
constexpr int kWrong = 1, kUsage = 2, kInternal = 3;

int run(const std::vector<Command>& commands) {
  try {
    for (const Command& c : commands) {
      if (c.app->parsed()) return c.run();
    }
    return kUsage;
  } catch (const UsageError& e) {
    fmt::print(stderr, "{}\n", e.render());
    return kUsage;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.render());
    return kWrong;
  } catch (const std::exception& e) {  // InternalError, or no memory
    fmt::print(stderr,
               "error: internal: {}\n  hint: this is a fault of gspmd: please report it with the "
               "program\n",
               e.what());
    return kInternal;
  }
}

int main(int argc, char** argv) {
  CLI::App app("SPMD partitioner for HLO programs");
  app.name("gspmd");
  app.set_version_flag("--version", std::string(version()));
  app.require_subcommand(1);
  app.footer(
      "'gspmd COMMAND --help' shows a command's options and examples.\n"
      "Exit codes: 0 done, 1 the input or the result is wrong, 2 wrong usage, 3 internal error.");
  std::vector<Command> commands = {add_partition(&app), add_propagate(&app), add_run(&app),
                                   add_check(&app),     add_explain(&app),   add_stats(&app),
                                   add_convert(&app)};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);  // prints help, or what is wrong with the usage
    return code == 0 ? 0 : kUsage;
  }
  return run(commands);
}

}  // namespace
}  // namespace gspmd::cli

int main(int argc, char** argv) { return gspmd::cli::main(argc, argv); }
