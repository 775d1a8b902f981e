#include "cli/top/top_screen.h"

#include <curses.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <map>
#include <span>
#include <string>

#include "cli/exit_codes.h"
#include "cli/queue_text.h"
#include "cli/server_session.h"
#include "cli/top/history.h"
#include "cli/top/queue_order.h"
#include "cli/top/top_text.h"
#include "sched/core/policy.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr size_t kHistory = 30;
constexpr int kEscape = 27;

enum Color : short { kGood = 1, kWaits, kBad };

constexpr const char* kHelp[] = {
    "up, down, k, j   select a queue",
    "+, -             raise, lower the priority of the selected queue",
    "s                sort by the next column",
    "p                set the next policy of the server (if you may)",
    "space            pause, go on",
    "h, ?             this help",
    "q, escape        end",
    "",
    "DEVICE is the share of the device's time, WAITING the share of the time in which a queue",
    "had work and was held. States: run, held, idle, stalled (runs, but nothing gets done),",
    "suspended (by the program itself), stopped (its process is), silent (it does not answer).",
    "Behind the device, and at the bottom for the selected queue: why it does not run.",
};

// The terminal, given back as it was whatever happens.
class Screen {
 public:
  Screen() {
    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
      throw CommandError(kExitFailed, "top needs a terminal (without one: xsched top --batch)");
    setlocale(LC_ALL, "");
    // initscr would end the process.
    screen_ = newterm(nullptr, stdout, stdin);
    if (screen_ == nullptr) {
      throw CommandError(kExitFailed,
                         "top cannot use this terminal: set TERM rightly, or use xsched top --batch");
    }
    set_term(screen_);
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    set_escdelay(25);
    if (has_colors()) {
      start_color();
      use_default_colors();
      init_pair(kGood, COLOR_GREEN, -1);
      init_pair(kWaits, COLOR_YELLOW, -1);
      init_pair(kBad, COLOR_RED, -1);
    }
  }
  ~Screen() {
    endwin();
    delscreen(screen_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

 private:
  SCREEN* screen_ = nullptr;
};

void Line(int y, const std::string& text, attr_t attributes = A_NORMAL) {
  attron(attributes);
  mvaddnstr(y, 0, text.c_str(), -1);
  attroff(attributes);
}

attr_t AttributesOf(const ipc::QueueInfo& queue) {
  std::string state = StateText(queue);
  if (state == "run") return static_cast<attr_t>(COLOR_PAIR(kGood));
  if (state == "held") return static_cast<attr_t>(COLOR_PAIR(kWaits));
  if (state == "stalled" || state == "stopped" || state == "silent")
    return static_cast<attr_t>(COLOR_PAIR(kBad));
  return A_NORMAL;
}

struct Device {
  double share = 0;
  History history{kHistory};
};

class View {
 public:
  View(double delay_s, int64_t count) : delay_(delay_s), count_(count) {
    // There is nothing before the first look, so it shows no rates.
    Look();
  }

  void Run() {
    Screen screen;
    for (int64_t looks = 1; !quit_;) {
      Draw();
      timeout(UntilNextLook());
      int key = getch();
      if (key != ERR) {
        Handle(key);
      } else {
        if (count_ != 0 && looks == count_) return;
        ++looks;
        Look();
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Keys do not put it off.
  int UntilNextLook() const {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(looked_ + delay_ - Clock::now());
    return std::max(0, static_cast<int>(left.count()));
  }

  void Look() {
    auto now = Clock::now();
    if (!paused_) {
      std::vector<ipc::QueueInfo> seen = server_.List();
      status_ = server_.Status();
      queues_ = RatesBetween(before_, seen, std::chrono::duration<double>(now - looked_).count());
      Sort(queues_, order_);
      UpdateDevices();
      before_ = std::move(seen);
    }
    looked_ = now;
  }

  void UpdateDevices() {
    for (auto& [name, device] : devices_) device.share = 0;
    for (const QueueRates& entry : queues_) devices_[DeviceName(entry.queue)].share += entry.device_share;
    for (auto& [name, device] : devices_) device.history.Add(device.share);
  }

  static std::string DeviceName(const ipc::QueueInfo& queue) {
    return fmt::format("{}: {}", PlatformText(queue.platform), queue.device_name);
  }

  void Handle(int key) {
    message_.clear();
    bool helped = help_;
    help_ = false;
    switch (key) {
      case 'q':
      case kEscape:
        quit_ = !helped;
        break;
      case 'h':
      case '?':
        help_ = !helped;
        break;
      case KEY_UP:
      case 'k':
        selection_.Move(queues_, -1);
        break;
      case KEY_DOWN:
      case 'j':
        selection_.Move(queues_, 1);
        break;
      case 's':
        order_ = NextOrder(order_);
        Sort(queues_, order_);
        break;
      case '+':
      case '=':
        ChangePriority(1);
        break;
      case '-':
        ChangePriority(-1);
        break;
      case 'p':
        NextPolicy();
        break;
      case ' ':
        paused_ = !paused_;
        break;
      default:
        break;
    }
  }

  // What the server refuses is said at the bottom; a server that has gone ends top.
  template <typename Action>
  void Try(Action action) {
    try {
      action();
    } catch (const CommandError& error) {
      if (error.code == kExitNoServer) throw;
      message_ = error.what();
    }
  }

  void ChangePriority(int by) {
    int row = selection_.Row(queues_);
    if (row < 0) return;
    ipc::QueueInfo& queue = queues_[static_cast<size_t>(row)].queue;
    ipc::SetHints request{};
    request.queue_id = queue.queue_id;
    request.mask = ipc::kHintPriority;
    request.hints.priority = std::clamp(queue.hints.priority + by, PRIORITY_NO_EXECUTE, PRIORITY_MAX);
    Try([&] {
      server_.SetHints(request);
      queue.hints.priority = request.hints.priority;
    });
  }

  void NextPolicy() {
    const std::span<const sched::PolicyGetter> policies = sched::Policies();
    auto is_current = [&](sched::PolicyGetter policy) {
      return static_cast<uint32_t>(policy().type()) == status_.policy;
    };
    auto next = std::find_if(policies.begin(), policies.end(), is_current);
    if (next == policies.end() || ++next == policies.end()) next = policies.begin();
    ipc::SetPolicy request{};
    request.policy = (*next)().type();
    Try([&] {
      server_.SetPolicy(request);
      status_ = server_.Status();
    });
  }

  void Draw() {
    erase();
    int y = 0;
    Line(y++, TopSummary(status_) + (paused_ ? " | paused" : ""), A_BOLD);
    for (const auto& [name, device] : devices_) {
      if (y < LINES - 3) DrawDevice(y++, name, device);
    }
    ++y;
    if (help_) {
      for (const char* line : kHelp) Line(y++, line);
    } else {
      DrawQueues(y);
    }
    Line(LINES - 1,
         message_.empty()
             ? fmt::format("q quit  h help  s sort ({})  up/down select  +/- priority  p policy  "
                           "space pause",
                           kOrderNames[static_cast<int>(order_)])
             : message_,
         message_.empty() ? A_DIM : static_cast<attr_t>(COLOR_PAIR(kBad)));
    refresh();
  }

  static void DrawDevice(int y, const std::string& name, const Device& device) {
    int width = std::max(10, COLS - 40 - static_cast<int>(kHistory));
    int full = static_cast<int>(std::min(1.0, device.share) * width);
    Line(y, fmt::format("{:<28.28} [{:<{}}] {:>4.0f}% {}", name, std::string(static_cast<size_t>(full), '|'),
                        width, device.share * 100, device.history.Sparkline(1.0)));
  }

  // The selected row is always among those that fit.
  void DrawQueues(int y) {
    Line(y++, fmt::format("{:<{}}", TopHeading(), COLS), A_REVERSE);
    int room = std::max(1, LINES - 2 - y);
    int selected = selection_.Row(queues_);
    first_ = std::clamp(first_, std::max(0, selected - room + 1), std::max(0, selected));
    for (int row = first_; row < std::min(static_cast<int>(queues_.size()), first_ + room); ++row) {
      const QueueRates& entry = queues_[static_cast<size_t>(row)];
      attr_t attributes = AttributesOf(entry.queue);
      Line(y++, fmt::format("{:<{}}", TopRow(entry), COLS),
           row == selected ? attributes | A_STANDOUT : attributes);
    }
    if (queues_.empty()) Line(y, "no queues: xsched run -- program");
    // A row may have no room for it.
    if (selected < 0) return;
    const ipc::QueueInfo& queue = queues_[static_cast<size_t>(selected)].queue;
    if (std::string why = WhyText(queue); !why.empty())
      Line(LINES - 2, fmt::format("queue {}: {}", queue.queue_id, why));
  }

  std::chrono::duration<double> delay_;
  int64_t count_;
  ServerSession server_;
  ipc::Status status_{};
  std::vector<ipc::QueueInfo> before_;
  std::vector<QueueRates> queues_;
  std::map<std::string, Device> devices_;
  Clock::time_point looked_{};
  Order order_ = Order::kDevice;
  Selection selection_;
  int first_ = 0;  // the row at the top
  bool paused_ = false;
  bool help_ = false;
  bool quit_ = false;
  std::string message_;
};

}  // namespace

void ShowTopOnScreen(double delay_s, int64_t count) { View(delay_s, count).Run(); }

}  // namespace xsched::cli
