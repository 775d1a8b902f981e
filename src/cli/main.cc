// xsched (and xcli): run programs under XSched, and look at and steer what runs.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "server/version.h"

int main(int argc, char** argv) {
  using namespace xsched::cli;
  CLI::App app("XSched: a preemptive scheduler for GPUs and other accelerators");
  app.name("xsched");
  app.set_version_flag("--version", fmt::format("xsched {}", xsched::kVersion));
  app.require_subcommand(1);
  app.failure_message([](const CLI::App* at, const CLI::Error& error) {
    // The one whose options were wrong: the innermost that was named.
    while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
    std::string command = at->get_name();
    for (at = at->get_parent(); at != nullptr; at = at->get_parent()) {
      if (!at->get_name().empty()) command = at->get_name() + " " + command;
    }
    return fmt::format("xsched: {} (see {} --help)\n", error.what(), command);
  });
  app.footer(
      "Exit status: 0 done; 1 failed; 2 wrong usage; 3 no server; 4 not permitted; run: the program's own.");
  AddRun(app);
  AddTop(app);
  AddList(app);
  AddHint(app);
  AddPolicy(app);
  AddConfig(app);
  AddDoctor(app);
  AddDemo(app);
  AddPlan(app);
  auto is_first_word = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_first_word).empty()) {
    fmt::print(stderr, "xsched: there is no command {} (see xsched --help)\n", argv[1]);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  } catch (const CommandError& error) {
    fmt::print(stderr, "xsched: {}\n", error.what());
    return error.code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "xsched: {}\n", error.what());
    return kExitFailed;
  }
  return kExitOk;
}
