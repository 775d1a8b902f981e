// xsched (and xcli): runs programs under XSched, and shows and controls their queues.
#include <errno.h>
#include <fmt/format.h>
#include <string.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <string>

#include "base/standard_descriptors.h"
#include "cli/all_commands.h"
#include "cli/exit_codes.h"
#include "server/version.h"

namespace {

using namespace xsched::cli;

// XSched 1.2's xcli asked a server for which there was an address and a port. This one is found by its
// socket.
void AddAddress(CLI::App& app) {
  app.add_option("--addr,-a",
                 "accepted as XSched 1.2's xcli does: 127.0.0.1 alone, for the server is on this machine")
      ->check(CLI::IsMember({"127.0.0.1", "localhost"}));
  app.add_option("--port,-p",
                 "accepted as XSched 1.2's xcli does, and not used: XSCHED_SOCKET chooses another server")
      ->check(CLI::Range(1, 65535));
}

// Not by fmt::print, which throws if nothing can be written there.
void Say(const std::exception& error) { std::fprintf(stderr, "xsched: %s\n", error.what()); }

// What a command has printed may still be in memory, so only now a full disk shows.
bool OutputIsWritten() {
  errno = 0;
  if (std::cout.flush() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
  // An earlier write may have failed, and nobody knows why any more.
  const std::string why = errno == 0 ? "" : std::string(": ") + strerror(errno);
  std::fprintf(stderr, "xsched: standard output cannot be written%s\n", why.c_str());
  return false;
}

ExitCode Run(int argc, char** argv) {
  CLI::App app("XSched: a preemptive scheduler for GPUs and other accelerators");
  app.name("xsched");
  app.set_version_flag("--version", fmt::format("xsched {}", xsched::kVersion));
  app.require_subcommand(1);
  AddAddress(app);
  app.failure_message([](const CLI::App* at, const CLI::Error& error) {
    // The innermost named command is the one whose options were wrong.
    while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
    std::string command = at->get_name();
    for (at = at->get_parent(); at != nullptr; at = at->get_parent()) {
      if (!at->get_name().empty()) command = at->get_name() + " " + command;
    }
    return fmt::format("xsched: {} (see {} --help)\n", error.what(), command);
  });
  app.footer(
      "Exit status: 0 done; 1 failed; 2 wrong usage; 3 no server; 4 not permitted; run: the program's own.");
  AddCommands(app);
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
    Say(error);
    return error.code;
  } catch (const std::exception& error) {
    Say(error);
    return kExitFailed;
  }
  return kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  xsched::OpenStandardDescriptors();
  const ExitCode status = Run(argc, argv);
  return status == kExitOk && !OutputIsWritten() ? kExitFailed : status;
}
