#include "server/event_loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>

#include "server/fail.h"

namespace xsched::server {
namespace {

constexpr uint64_t kTimerTag = ~uint64_t{0};
constexpr uint64_t kSignalTag = ~uint64_t{0} - 1;

}  // namespace

EventLoop::EventLoop() {
  epoll_.Reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) Fail("cannot make an epoll");
  timer_.Reset(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer_) Fail("cannot make a timer");
  sigset_t taken;
  sigemptyset(&taken);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&taken, signal);
  sigprocmask(SIG_BLOCK, &taken, nullptr);
  signals_.Reset(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!signals_) Fail("cannot take signals");
  if (!Watch(timer_.get(), EPOLLIN | EPOLLET, kTimerTag) || !Watch(signals_.get(), EPOLLIN, kSignalTag)) {
    Fail("cannot watch for events");
  }
}

bool EventLoop::Watch(int fd, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  return errno == EEXIST && epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void EventLoop::Unwatch(int fd) noexcept { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void EventLoop::WakeAt(TimePoint time) {
  // A timer that expires too early costs one idle round. Setting it each time would cost a system call per
  // round.
  if (time == kNever || (timer_at_ != kNever && timer_at_ <= time)) return;
  timer_at_ = time;
  auto since = std::max(time.time_since_epoch(), Duration(1));
  itimerspec when{};
  when.it_value.tv_sec = since / std::chrono::seconds(1);
  when.it_value.tv_nsec = (since % std::chrono::seconds(1)).count();
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void EventLoop::ReadSignals() {
  signalfd_siginfo signal{};
  while (read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo == SIGHUP) {
      hung_up_ = SignalSender{static_cast<pid_t>(signal.ssi_pid), signal.ssi_uid};
    } else if (signal.ssi_signo == SIGCHLD) {
      child_end_ = true;
    } else {
      end_requested_ = true;
    }
  }
}

std::span<const uint64_t> EventLoop::Wait(int timeout_ms) {
  static epoll_event events[kMaxEvents];
  int count = epoll_wait(epoll_.get(), events, kMaxEvents, timeout_ms);
  if (count < 0 && errno != EINTR) Fail("cannot wait for events");
  size_t tags = 0;
  for (int i = 0; i < count; ++i) {
    uint64_t tag = events[i].data.u64;
    if (tag == kTimerTag) {
      timer_at_ = kNever;
    } else if (tag == kSignalTag) {
      ReadSignals();
    } else {
      tags_[tags++] = tag;
    }
  }
  return {tags_.data(), tags};
}

}  // namespace xsched::server
