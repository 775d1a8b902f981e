#include "cli/top/top_screen.h"

#include <curses.h>
#include <fmt/format.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/exit_codes.h"
#include "cli/policy_text.h"
#include "cli/queue_text.h"
#include "cli/top/devices.h"
#include "cli/top/looks.h"
#include "cli/top/next_policy.h"
#include "cli/top/queue_order.h"
#include "cli/top/steered_priority.h"
#include "cli/top/text_columns.h"
#include "cli/top/top_text.h"
#include "sched/core/policy.h"
#include "xsched/types.h"

namespace xsched::cli {
namespace {

constexpr size_t kWaitLines = 3;
constexpr int kEscape = 27;

enum Color : short { kGood = 1, kWaits, kBad };

constexpr const char* kHelp[] = {
    "up, down, k, j   select a queue",
    "+, -             raise, lower the priority of the selected queue",
    "s                sort by the next column",
    "p                set the next policy of the server (if you may, and it has no chain of them)",
    "space            pause, go on",
    "h, ?             this help",
    "q, escape        end",
    "",
    "Below the devices: the device time of each tenant, or of each user where the server has no",
    "tenants' file, and who waited for whom since the last update.",
    "DEVICE is the share of the device's time, WAITING the share of the time in which a queue",
    "had work and was held. LATENCY has the longest request of each update, the last one at its",
    "right, and the full height is the longest of them all. It is not known of queues that",
    "have the device for themselves. States: run, held, idle, stalled (runs, but nothing gets",
    "done), suspended (by the program itself), stopped (its process is), silent (it does not",
    "answer). At the bottom: why the selected queue does not run.",
};

// https://no-color.org
bool WantsColors() {
  const char* no_color = std::getenv("NO_COLOR");
  return has_colors() && (no_color == nullptr || *no_color == '\0');
}

attr_t Colored(Color color) { return WantsColors() ? static_cast<attr_t>(COLOR_PAIR(color)) : A_NORMAL; }

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
    if (WantsColors()) {
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

// Nobody can see or end top any more. (A signal says so as well, unless it is ignored.)
bool TerminalIsGone() {
  pollfd ends[] = {{STDIN_FILENO, 0, 0}, {STDOUT_FILENO, 0, 0}};
  return poll(ends, 2, 0) > 0;
}

TopStyle Style() { return {.width = COLS, .ascii = std::string_view(nl_langinfo(CODESET)) != "UTF-8"}; }

void Line(int y, std::string text, attr_t attributes = A_NORMAL) {
  constexpr std::string_view kMicro = "µ";
  if (Style().ascii) {
    for (size_t at; (at = text.find(kMicro)) != std::string::npos;)
      text.erase(at, kMicro.size()).insert(at, 1, 'u');
  }
  attron(attributes);
  mvaddnstr(y, 0, Cut(text, COLS).c_str(), -1);
  attroff(attributes);
}

attr_t AttributesOf(const ipc::QueueInfo& queue) {
  std::string state = StateText(queue);
  if (state == "run") return Colored(kGood);
  if (state == "held") return Colored(kWaits);
  if (state == "stalled" || state == "stopped" || state == "silent") return Colored(kBad);
  return A_NORMAL;
}

class View {
 public:
  View(Duration delay, int64_t count) : delay_(delay), count_(count), looks_(delay) { Take(); }

  void Run() {
    Screen screen;
    for (int64_t looks = 1; !quit_;) {
      Draw();
      timeout(UntilNextLook());
      int key = getch();
      if (key != ERR) {
        Handle(key);
      } else {
        if (TerminalIsGone()) throw CommandError(kExitFailed, "the terminal is gone");
        if (count_ != 0 && looks == count_) return;
        ++looks;
        Look();
      }
    }
  }

 private:
  // Keys do not put it off.
  int UntilNextLook() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(looked_ + delay_ - MonotonicClock::now());
    return std::max(0, static_cast<int>(left.count()));
  }

  void Look() {
    if (!paused_) {
      looks_.Look();
      Take();
    }
    looked_ = MonotonicClock::now();
  }

  void Take() {
    looked_ = MonotonicClock::now();
    Sort(looks_.queues(), order_);
    devices_.Take(looks_.queues(), looks_.accounts());
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
        selection_.Move(looks_.queues(), -1);
        break;
      case KEY_DOWN:
      case 'j':
        selection_.Move(looks_.queues(), 1);
        break;
      case 's':
        order_ = NextOrder(order_);
        Sort(looks_.queues(), order_);
        break;
      case '+':
      case '=':
        ChangePriority(1);
        break;
      case '-':
        ChangePriority(-1);
        break;
      case 'p':
        SetNextPolicy();
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
    int row = selection_.Row(looks_.queues());
    if (row < 0) return;
    ipc::QueueInfo& queue = looks_.queues()[static_cast<size_t>(row)].queue;
    ipc::SetHints request{};
    request.queue_id = queue.queue_id;
    request.mask = ipc::kHintPriority;
    const int32_t before = SteeredPriority(queue, looks_.status().is_admin != 0);
    request.hints.priority = std::clamp(before + by, PRIORITY_NO_EXECUTE, PRIORITY_MAX);
    Try([&] {
      looks_.server().SetHints(request);
      queue.hints.priority = request.hints.priority;
      if (looks_.status().is_admin != 0) queue.counted_priority = request.hints.priority;
    });
  }

  void SetNextPolicy() {
    const std::string setting = PolicyText(looks_.status());
    const sched::Policy* next = NextPolicy(setting);
    if (next == nullptr) {
      message_ = fmt::format("p would replace {}: use xsched policy set", setting);
      return;
    }
    ipc::SetPolicy request{};
    request.policy = next->type();
    Try([&] {
      looks_.server().SetPolicy(request);
      looks_.LookAtStatus();
    });
  }

  void Draw() {
    erase();
    TopStyle style = Style();
    style.is_admin = looks_.status().is_admin != 0;
    int y = 0;
    Line(y++, (paused_ ? "paused | " : "") + TopSummary(looks_.status(), style), A_BOLD);
    for (const std::string& line : devices_.Lines(style)) {
      if (y < LINES - 3) Line(y++, line);
    }
    if (help_) {
      ++y;
      for (const char* line : kHelp) Line(y++, line);
    } else {
      y = DrawSums(y, style);
      y = DrawWaits(y, style);
      y = DrawProcesses(y, style);
      DrawQueues(y, style);
    }
    Line(LINES - 1, message_.empty() ? KeysText() : message_, message_.empty() ? A_DIM : Colored(kBad));
    refresh();
  }

  // The first ones are those that are needed first.
  std::string KeysText() const {
    const std::string order = fmt::format("s sort ({})", kOrderNames[static_cast<int>(order_)]);
    std::string line;
    for (const std::string& key :
         {std::string("q quit"), std::string("h help"), order, std::string("up/down select"),
          std::string("+/- priority"), std::string("p policy"), std::string("space pause")}) {
      if (WidthOf(line) + 2 + WidthOf(key) > COLS) break;
      line += (line.empty() ? "" : "  ") + key;
    }
    return line;
  }

  int DrawSums(int y, const TopStyle& style) const {
    const std::string line = SumsLine(looks_.accounts(), looks_.tenants(), style);
    if (!line.empty() && y < LINES - 4) Line(y++, line);
    return y;
  }

  int DrawWaits(int y, const TopStyle& style) const {
    for (const std::string& line : WaitLines(looks_.recent(), kWaitLines, style)) {
      if (y < LINES - 4) Line(y++, line, Colored(kWaits));
    }
    return y;
  }

  // Of the room, a third at most. One process has the figures of its queues.
  int DrawProcesses(int y, const TopStyle& style) const {
    const std::vector<std::string> lines = ProcessLines(looks_.accounts(), style);
    constexpr size_t kHeadingAndOne = 2;
    const auto room = static_cast<size_t>(std::max(0, (LINES - y) / 3));
    if (lines.size() <= kHeadingAndOne || room < kHeadingAndOne + 1) return y;
    ++y;
    for (size_t i = 0; i < std::min(room, lines.size()); ++i)
      Line(y++, lines[i], i == 0 ? A_UNDERLINE : A_NORMAL);
    return y;
  }

  // The selected row is always among those that fit.
  void DrawQueues(int y, const TopStyle& style) {
    ++y;
    Line(y++, Fit(TopHeading(style), COLS), A_REVERSE);
    const std::vector<QueueRates>& queues = looks_.queues();
    const int room = std::max(1, LINES - 2 - y);
    const int selected = selection_.Row(queues);
    first_ = std::clamp(first_, std::max(0, selected - room + 1), std::max(0, selected));
    for (int row = first_; row < std::min(static_cast<int>(queues.size()), first_ + room); ++row) {
      const QueueRates& entry = queues[static_cast<size_t>(row)];
      const attr_t attributes = AttributesOf(entry.queue);
      const std::string text = TopRow(entry, looks_.recent().RequestsOf(entry.queue.queue_id), style);
      Line(y++, Fit(text, COLS), row == selected ? attributes | A_STANDOUT : attributes);
    }
    if (queues.empty()) Line(y, "no queues: xsched run -- program");
    // A row may have no room for it.
    if (selected < 0) return;
    const ipc::QueueInfo& queue = queues[static_cast<size_t>(selected)].queue;
    if (std::string why = WhyText(queue); !why.empty())
      Line(LINES - 2, fmt::format("queue {}: {}", queue.queue_id, why));
  }

  Duration delay_;
  int64_t count_;
  Looks looks_;
  Devices devices_{Looks::kParts};
  TimePoint looked_{};
  Order order_ = Order::kDevice;
  Selection selection_;
  int first_ = 0;  // the row at the top
  bool paused_ = false;
  bool help_ = false;
  bool quit_ = false;
  std::string message_;
};

}  // namespace

void ShowTopOnScreen(Duration delay, int64_t count) { View(delay, count).Run(); }

}  // namespace xsched::cli
