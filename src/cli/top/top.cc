// xsched top: the queues, live.
#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/become.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "cli/top/looks.h"
#include "cli/top/queue_order.h"
#include "cli/top/remote_top.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_text.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

struct TopOptions {
  double delay_s = 1;
  std::optional<double> frequency;  // in place of the delay
  int64_t count = 0;
  bool batch = false;
  bool plain = false;
  std::string host;
};

Duration DelayOf(const TopOptions& options) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(options.delay_s));
}

void PrintTables(const Looks& looks) {
  std::vector<QueueRates> queues = looks.queues();
  Sort(queues, Order::kDevice);
  const TopStyle style{.is_admin = looks.status().is_admin != 0};
  fmt::print("{}\n{}\n", TopSummary(looks.status()), TopHeading());
  for (const QueueRates& entry : queues)
    fmt::print("{}\n", TopRow(entry, looks.recent().RequestsOf(entry.queue.queue_id), style));
}

void PrintSentences(const Looks& looks) {
  for (const std::string& line :
       TopSentences(looks.status(), looks.queues(), looks.accounts(), looks.tenants(), looks.recent()))
    fmt::print("{}\n", line);
  fmt::print("\n");
}

// For a reader at a terminal, who says when to go on. False: to end.
bool WaitForEnter() {
  std::string line;
  return std::getline(std::cin, line) && line != "q";
}

void PrintLooks(const TopOptions& options) {
  Looks looks(DelayOf(options));
  const bool on_demand = options.plain && isatty(STDIN_FILENO) != 0;
  for (int64_t i = 0; options.count == 0 || i < options.count; ++i) {
    // Rates need some time.
    if (!on_demand || i == 0) SleepFor(DelayOf(options));
    looks.Look();
    options.plain ? PrintSentences(looks) : PrintTables(looks);
    if (std::fflush(stdout) != 0) throw CannotWriteStandardOutput(errno);
    if (on_demand && i + 1 != options.count && !WaitForEnter()) return;
  }
}

[[noreturn]] void ShowTopOf(const TopOptions& options) {
  // As it was given: the two have different limits.
  std::vector<std::string> arguments = {options.frequency ? fmt::format("--frequency={}", *options.frequency)
                                                          : fmt::format("--delay={}", options.delay_s)};
  if (options.count != 0) arguments.push_back(fmt::format("--count={}", options.count));
  if (options.batch) arguments.emplace_back("--batch");
  if (options.plain) arguments.emplace_back("--plain");
  const bool terminal = !options.batch && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  Become(RemoteTop(options.host, terminal, arguments));
}

bool CannotMoveTheCursor() {
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) == "dumb";
}

}  // namespace

void AddTop(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* top = app.add_subcommand("top", "show the queues, live");
  top->add_option("--delay,-d", options->delay_s, "seconds between updates (1)")->check(Between(0.1, 3600.0));
  top->add_option_function<double>(
         "--frequency,-f",
         [options](double frequency) {
           options->frequency = frequency;
           options->delay_s = 1 / frequency;
         },
         "updates per second")
      ->check(Between(0.1, 30.0));
  top->add_option("--count,-n", options->count, "end after so many updates")->check(AboveZero());
  CLI::Option* batch = top->add_flag("--batch,-b", options->batch, "tables as text, for files and pipes");
  top->add_flag(
         "--plain", options->plain,
         "sentences, for screen readers; at a terminal, the next ones when you press Enter (q Enter: end)")
      ->excludes(batch);
  top->add_option(
         "--host", options->host,
         "of another machine ([USER@]HOST), by ssh: with your own rights there, which has xsched in its PATH")
      ->check(CLI::Validator(
          [](const std::string& host) {
            // To ssh it would be an option.
            return host.empty() || host[0] == '-' ? "is no name of a host" : "";
          },
          ""));
  top->footer(
      "Keys: up, down select; + - priority; s sort; p policy; space pause; h help; q quit.\n"
      "DEVICE: share of the device's time; WAITING: share of the time with work, but held.\n"
      "P50, P99, LATENCY: how long requests took lately, as far as the server remembers them: of queues that "
      "share a device with others of another priority or share.\n"
      "NO_COLOR=1: no colors. With TERM=dumb: as --plain.\n"
      "Exit status with --host: that of xsched there; 255: ssh failed.");
  top->callback([options] {
    options->plain |= !options->batch && CannotMoveTheCursor();
    if (!options->host.empty()) ShowTopOf(*options);
    if (options->batch || options->plain) {
      PrintLooks(*options);
    } else {
      ShowTopOnScreen(DelayOf(*options), options->count);
    }
  });
}

}  // namespace xsched::cli
