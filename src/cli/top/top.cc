// xsched top: the queues, live.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/server_session.h"
#include "cli/top/queue_order.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_text.h"
#include "cli/validators.h"

namespace xsched::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct TopOptions {
  double delay_s = 1;
  int64_t count = 0;
  bool batch = false;
};

void PrintLooks(const TopOptions& options) {
  ServerSession server;
  std::vector<ipc::QueueInfo> before = server.List();
  auto looked = Clock::now();
  for (int64_t i = 0; options.count == 0 || i < options.count; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.delay_s));
    std::vector<ipc::QueueInfo> seen = server.List();
    auto now = Clock::now();
    auto queues = RatesBetween(before, seen, std::chrono::duration<double>(now - looked).count());
    Sort(queues, Order::kDevice);
    fmt::print("{}\n{}\n", TopSummary(server.Status()), TopHeading());
    for (const QueueRates& entry : queues) fmt::print("{}\n", TopRow(entry));
    std::fflush(stdout);
    before = std::move(seen);
    looked = now;
  }
}

}  // namespace

void AddTop(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* top = app.add_subcommand("top", "show the queues, live");
  top->add_option("--delay,-d", options->delay_s, "seconds between updates (1)")
      ->check(CLI::Range(0.1, 3600.0));
  top->add_option_function<double>(
         "--frequency,-f", [options](double frequency) { options->delay_s = 1 / frequency; },
         "updates per second")
      ->check(CLI::Range(0.1, 30.0));
  top->add_option("--count,-n", options->count, "end after so many updates")->check(AboveZero());
  top->add_flag("--batch,-b", options->batch, "plain text, for files and pipes");
  top->footer(
      "Keys: up, down select; + - priority; s sort; p policy; space pause; h help; q quit.\n"
      "DEVICE: share of the device's time; WAITING: share of the time with work, but held.");
  top->callback([options] {
    if (options->batch) {
      PrintLooks(*options);
    } else {
      ShowTopOnScreen(options->delay_s, options->count);
    }
  });
}

}  // namespace xsched::cli
