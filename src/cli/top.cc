// xsched top: the queues, live.
#include <curses.h>
#include <fmt/format.h>

#include <chrono>
#include <clocale>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/queue_text.h"
#include "cli/rates.h"
#include "cli/server_session.h"
#include "cli/validators.h"
#include "sched/core/policy.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

struct TopOptions {
  double delay_s = 1;
  int64_t count = 0;
  bool batch = false;
};

enum class Order { kDevice, kPriority, kCommands, kWaiting };

constexpr const char* kOrderNames[] = {"device share", "priority", "commands/s", "waiting"};

void Sort(std::vector<QueueRates>& queues, Order order) {
  auto key = [order](const QueueRates& entry) -> double {
    switch (order) {
      case Order::kPriority:
        return entry.queue.hints.priority;
      case Order::kCommands:
        return entry.commands_per_s;
      case Order::kWaiting:
        return entry.waiting_share;
      default:
        return entry.device_share;
    }
  };
  std::stable_sort(queues.begin(), queues.end(),
                   [&](const QueueRates& a, const QueueRates& b) { return key(a) > key(b); });
}

std::string Heading() {
  return fmt::format("{:>6} {:>8} {:<18} {:<9} {:>5} {:>3} {:>11} {:>7} {:>7}  {}", "QUEUE", "PID", "PROCESS",
                     "STATE", "PRIO", "LVL", "COMMANDS/s", "DEVICE", "WAITING", "ON");
}

std::string Row(const QueueRates& entry) {
  const ipc::QueueInfo& queue = entry.queue;
  return fmt::format("{:>6} {:>8} {:<18.18} {:<9} {:>5} {:>3} {:>11.1f} {:>6.1f}% {:>6.1f}%  {}",
                     queue.queue_id, queue.pid, queue.name, StateText(queue), queue.hints.priority,
                     queue.level, entry.commands_per_s, entry.device_share * 100, entry.waiting_share * 100,
                     queue.device_name);
}

std::string Summary(const ipc::Status& status) {
  return fmt::format("xserver {} policy {} | {} clients, {} queues | incidents {}", status.version,
                     sched::PolicyName(static_cast<XPolicyType>(status.policy)), status.clients,
                     status.queues, status.incidents);
}

void RunBatch(const TopOptions& options) {
  ServerSession server;
  std::vector<ipc::QueueInfo> before = server.List();
  for (int64_t i = 0; options.count == 0 || i < options.count; ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.delay_s));
    std::vector<ipc::QueueInfo> now = server.List();
    fmt::print("{}\n{}\n", Summary(server.Status()), Heading());
    auto queues = RatesBetween(before, now, options.delay_s);
    Sort(queues, Order::kDevice);
    for (const QueueRates& entry : queues) fmt::print("{}\n", Row(entry));
    std::fflush(stdout);
    before = std::move(now);
  }
}

// The terminal, given back as it was whatever happens.
class Screen {
 public:
  Screen() {
    setlocale(LC_ALL, "");
    if (initscr() == nullptr) throw CommandError(kExitFailed, "top needs a terminal (or --batch)");
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
  }
  ~Screen() { endwin(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
};

class LiveView {
 public:
  explicit LiveView(const TopOptions& options) : options_(options) {}

  void Run() {
    before_ = server_.List();
    last_look_ = Clock::now();
    Look();
    Screen screen;
    timeout(static_cast<int>(options_.delay_s * 1000));
    for (int64_t shown = 0; !quit_ && (options_.count == 0 || shown < options_.count);) {
      Draw();
      int key = getch();
      if (key == ERR) {
        ++shown;
        if (!paused_) Look();
      } else {
        Handle(key);
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Look() {
    std::vector<ipc::QueueInfo> now = server_.List();
    status_ = server_.Status();
    auto time = Clock::now();
    queues_ = RatesBetween(before_, now, std::chrono::duration<double>(time - last_look_).count());
    Sort(queues_, order_);
    before_ = std::move(now);
    last_look_ = time;
    selected_ = std::min<int>(selected_, std::max<int>(0, static_cast<int>(queues_.size()) - 1));
  }

  void Handle(int key) {
    message_.clear();
    switch (key) {
      case 'q':
      case 27:
        quit_ = true;
        break;
      case KEY_UP:
      case 'k':
        selected_ = std::max(0, selected_ - 1);
        break;
      case KEY_DOWN:
      case 'j':
        selected_ = std::min(static_cast<int>(queues_.size()) - 1, selected_ + 1);
        break;
      case 's':
        order_ = static_cast<Order>((static_cast<int>(order_) + 1) % 4);
        Sort(queues_, order_);
        break;
      case '+':
      case '=':
        ChangePriority(1);
        break;
      case '-':
        ChangePriority(-1);
        break;
      case ' ':
        paused_ = !paused_;
        break;
      default:
        break;
    }
  }

  void ChangePriority(int by) {
    if (selected_ < 0 || selected_ >= static_cast<int>(queues_.size())) return;
    ipc::QueueInfo& queue = queues_[static_cast<size_t>(selected_)].queue;
    ipc::SetHints request{};
    request.queue_id = queue.queue_id;
    request.mask = ipc::kHintPriority;
    request.hints.priority = std::clamp(queue.hints.priority + by, PRIORITY_NO_EXECUTE, PRIORITY_MAX);
    try {
      server_.SetHints(request);
      queue.hints.priority = request.hints.priority;
    } catch (const CommandError& error) {
      message_ = error.what();
    }
  }

  void Line(int y, const std::string& text, attr_t attributes = A_NORMAL) {
    attron(attributes);
    mvaddnstr(y, 0, text.c_str(), COLS);
    attroff(attributes);
  }

  void Draw() {
    erase();
    int y = 0;
    Line(y++, Summary(status_) + (paused_ ? " | paused" : ""), A_BOLD);
    for (const auto& [device, share] : DeviceShares()) {
      int width = std::max(10, COLS - 40);
      int full = static_cast<int>(std::min(1.0, share) * width);
      Line(y++, fmt::format("{:<28.28} [{}{}] {:>4.0f}%", device, std::string(static_cast<size_t>(full), '|'),
                            std::string(static_cast<size_t>(width - full), ' '), share * 100));
    }
    ++y;
    Line(y++, Heading(), A_REVERSE);
    for (size_t i = 0; i < queues_.size() && y < LINES - 1; ++i) {
      Line(y++, Row(queues_[i]), static_cast<int>(i) == selected_ ? A_STANDOUT : A_NORMAL);
    }
    Line(LINES - 1, message_.empty()
                        ? fmt::format("q quit  s sort ({})  up/down select  +/- priority  space pause",
                                      kOrderNames[static_cast<int>(order_)])
                        : message_);
    refresh();
  }

  std::map<std::string, double> DeviceShares() const {
    std::map<std::string, double> shares;
    for (const QueueRates& entry : queues_) shares[entry.queue.device_name] += entry.device_share;
    return shares;
  }

  TopOptions options_;
  ServerSession server_;
  ipc::Status status_{};
  std::vector<ipc::QueueInfo> before_;
  std::vector<QueueRates> queues_;
  Clock::time_point last_look_;
  Order order_ = Order::kDevice;
  int selected_ = 0;
  bool paused_ = false;
  bool quit_ = false;
  std::string message_;
};

}  // namespace

void AddTop(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  CLI::App* top = app.add_subcommand("top", "show the queues, live");
  top->add_option("--delay,-d", options->delay_s, "seconds between looks")->check(CLI::Range(0.1, 3600.0));
  top->add_option("--count,-n", options->count, "end after so many looks")->check(AboveZero());
  top->add_flag("--batch,-b", options->batch, "plain text, for files and pipes");
  top->callback([options] {
    if (options->batch) {
      RunBatch(*options);
    } else {
      LiveView(*options).Run();
    }
  });
}

}  // namespace xsched::cli
