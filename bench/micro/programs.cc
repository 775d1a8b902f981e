#include "programs.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "ipc/control_access.h"
#include "measuring.h"
#include "server/testing/acting_as.h"

namespace xsched::bench {
namespace {

using namespace std::chrono_literals;
using server::testing::ActingAs;
using server::testing::TestAgent;

// One of so many programs of a device is urgent.
constexpr int kUrgentEvery = 5;
constexpr Priority kUrgent = 10;
constexpr Duration kCopyLasts = 100us;
// As the heartbeat of agents.
constexpr Duration kAskEvery = 60ms;
constexpr Duration kPatience = 1s;
// Whoever does not look for so long has been kept from it, by another process or by the hypervisor.
constexpr Duration kLongestBlink = 50us;
// Some numbers that no user of this machine should have.
constexpr uid_t kFirstUser = 54321;

constexpr uint32_t kServing = 0;  // the queue of an urgent program's requests

// The server has read all that the program has sent. It may have sent time slices as well.
bool IsServed(TestAgent& agent) {
  if (!agent.Send(ipc::Ping{})) return false;
  while (const std::optional<ipc::Packet> packet = agent.Receive()) {
    if (packet->header().type == ipc::MessageType::kPong) return true;
  }
  return false;
}

}  // namespace

Programs::Programs(const ipc::SocketPath& socket, const Crowd& crowd)
    : crowd_(crowd),
      random_(crowd.seed),
      urgent_of_(static_cast<size_t>(crowd.devices)),
      busy_of_(static_cast<size_t>(crowd.devices)),
      messages_(epoll_create1(EPOLL_CLOEXEC)) {
  for (int i = 0; i < crowd.programs; ++i) {
    const int on_device = i / crowd.devices;
    std::optional<ActingAs> user;
    if (crowd.users > 1) user.emplace(kFirstUser + static_cast<uid_t>(on_device % crowd.users));
    Program& program = programs_.emplace_back();
    program.device = i % crowd.devices;
    program.urgent = on_device % kUrgentEvery == 0;
    Connect(socket);
  }
}

void Programs::Connect(const ipc::SocketPath& socket) {
  Program& program = programs_.back();
  program.agent = std::make_unique<TestAgent>(socket);
  CreateQueues(program);
  if (!IsServed(*program.agent)) throw std::runtime_error("a program was not served");
  epoll_event event{EPOLLIN, {.u64 = programs_.size() - 1}};
  epoll_ctl(messages_.get(), EPOLL_CTL_ADD, program.agent->fd(), &event);
  const auto device = static_cast<size_t>(program.device);
  if (program.urgent) return urgent_of_[device].push_back(programs_.size() - 1);
  for (int i = 0; i < crowd_.busy; ++i)
    busy_of_[device].push_back(&program.agent->block(static_cast<uint32_t>(i)));
}

void Programs::CreateQueues(Program& program) {
  program.answered.resize(static_cast<size_t>(crowd_.queues));
  for (uint32_t i = 0; i < program.answered.size(); ++i) {
    ipc::QueueCreated message{};
    message.index = i;
    message.level = static_cast<uint32_t>(crowd_.level);
    message.device = static_cast<uint64_t>(program.device) + 1;
    message.hints.priority = program.urgent ? kUrgent : 0;
    message.traits =
        (crowd_.level >= 2 ? ipc::kTraitDeviceGates : 0) | (crowd_.level >= 3 ? ipc::kTraitTimeSlices : 0);
    if (!program.agent->Create(message)) throw std::runtime_error("the server takes no more queues");
  }
}

Duration Programs::Pause(double per_second) {
  return Duration(static_cast<int64_t>(std::exponential_distribution<>(per_second)(random_) * 1e9));
}

// ---- what programs do ----

void Programs::Request(int device, TimePoint now) {
  At(now + Pause(crowd_.requests), [=, this] { Request(device, MonotonicClock::now()); });
  const std::vector<size_t>& urgent = urgent_of_[static_cast<size_t>(device)];
  const size_t chosen = urgent[random_() % urgent.size()];
  if (programs_[chosen].working) return;
  Hold hold{.program = chosen};
  for (const ipc::ControlBlock* block : busy_of_[static_cast<size_t>(device)]) {
    if (!ipc::ClosesGate(*block)) hold.open.push_back(block);
  }
  hold.began = MonotonicClock::now();
  programs_[chosen].working = true;
  programs_[chosen].agent->Submit(kServing);
  holds_.push_back(std::move(hold));
}

void Programs::EndRequest(size_t program) {
  programs_[program].working = false;
  programs_[program].agent->RetireAll(kServing);
}

// On a queue that has no other work.
void Programs::Copy(size_t program) {
  const auto queue = static_cast<uint32_t>(crowd_.queues - 1);
  TestAgent& agent = *programs_[program].agent;
  const TimePoint now = MonotonicClock::now();
  At(now + Pause(crowd_.copies), [=, this] { Copy(program); });
  if (ipc::ReadSubmitted(agent.block(queue)) != ipc::ReadRetired(agent.block(queue))) return;
  agent.Submit(queue);
  // A held copy ends when it may run.
  At(now + kCopyLasts, [=, this] { EndCopy(program); });
}

void Programs::EndCopy(size_t program) {
  const auto queue = static_cast<uint32_t>(crowd_.queues - 1);
  TestAgent& agent = *programs_[program].agent;
  if (!agent.IsHeld(queue)) return agent.RetireAll(queue);
  At(MonotonicClock::now() + kCopyLasts, [=, this] { EndCopy(program); });
}

// As an agent does while anything is taken from its process.
void Programs::AskServer(size_t program) {
  TestAgent& agent = *programs_[program].agent;
  At(MonotonicClock::now() + kAskEvery, [=, this] { AskServer(program); });
  for (uint32_t i = 0; i < programs_[program].answered.size(); ++i) {
    if (!ipc::AnythingTaken(agent.block(i))) continue;
    agent.Send(ipc::Ping{});
    return;
  }
}

// As a woken agent does: for each queue that the server has asked about, what has retired.
void Programs::Answer(Program& program) {
  program.agent->ReadAll();
  for (uint32_t i = 0; i < program.answered.size(); ++i) {
    ipc::ControlBlock& block = program.agent->block(i);
    const uint32_t asked = ipc::ReadQuery(block);
    if (std::exchange(program.answered[i], asked) == asked) continue;
    if (ipc::ReadSubmitted(block) == ipc::ReadRetired(block)) continue;
    // It has done something, and has more to do.
    if (!ipc::ClosesGate(block)) ipc::RaiseRetired(block, ipc::CountSubmitted(block) - 1);
    ipc::RingScheduler(program.agent->segment(), i, program.agent->bell());
  }
}

// ---- the loop ----

void Programs::Start() {
  const TimePoint now = MonotonicClock::now();
  for (int device = 0; device < crowd_.devices; ++device)
    At(now + Pause(crowd_.requests), [=, this] { Request(device, MonotonicClock::now()); });
  for (size_t i = 0; i < programs_.size(); ++i) {
    Program& program = programs_[i];
    At(now + Pause(1 / InSeconds(kAskEvery)), [=, this] { AskServer(i); });
    if (program.urgent) continue;
    for (uint32_t queue = 0; queue < static_cast<uint32_t>(crowd_.busy); ++queue)
      program.agent->Submit(queue);
    if (crowd_.copies > 0 && crowd_.busy < crowd_.queues)
      At(now + Pause(crowd_.copies), [=, this] { Copy(i); });
  }
}

CrowdFigures Programs::Run(Duration time) {
  figures_ = {};
  const TimePoint end = MonotonicClock::now() + time;
  for (TimePoint now{}; (now = MonotonicClock::now()) < end;) {
    CheckHolds(now);
    if (!HappenNext(now)) ReadOne();
  }
  return std::exchange(figures_, {});
}

// True: something was due.
bool Programs::HappenNext(TimePoint now) {
  if (events_.empty() || events_.top().at > now) return false;
  const Event event = events_.top();
  events_.pop();
  event.happen();
  return true;
}

void Programs::CheckHolds(TimePoint now) {
  const bool blinked = now > looked_at_ + kLongestBlink;
  looked_at_ = now;
  for (size_t i = holds_.size(); i-- > 0;) {
    Hold& hold = holds_[i];
    hold.seen = hold.seen && !blinked;
    const size_t closed = hold.closed;
    while (hold.closed < hold.open.size() && ipc::ClosesGate(*hold.open[hold.closed])) ++hold.closed;
    const double took_us = InSeconds(MonotonicClock::now() - hold.began) * 1e6;
    if (closed == 0 && hold.closed > 0) hold.first_close_us = took_us;
    const bool all = hold.closed == hold.open.size();
    if (!all && now < hold.began + kPatience) continue;
    if (!hold.seen) {
      ++figures_.unseen;
    } else if (!hold.open.empty()) {
      figures_.never += !all;
      figures_.close_us.push_back(took_us);
      figures_.first_close_us.push_back(hold.first_close_us);
      figures_.displaced.push_back(static_cast<double>(hold.open.size()));
    }
    At(hold.began + crowd_.work, [=, this, program = hold.program] { EndRequest(program); });
    holds_.erase(holds_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void Programs::ReadOne() {
  epoll_event event{};
  if (epoll_wait(messages_.get(), &event, 1, 0) == 1) Answer(programs_[event.data.u64]);
}

void Programs::Finish() {
  events_ = {};
  holds_.clear();
  for (Program& program : programs_) {
    for (uint32_t i = 0; i < program.answered.size(); ++i) program.agent->RetireAll(i);
    program.agent->ReadAll();
    program.working = false;
  }
}

}  // namespace xsched::bench
