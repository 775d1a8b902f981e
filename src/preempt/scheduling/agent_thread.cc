#include "preempt/scheduling/agent_thread.h"

#include <poll.h>

#include <algorithm>

#include "base/thread.h"

namespace xsched::preempt {
namespace {

void Sleep(const AgentThread::Work::Sources& sources, TimePoint until) {
  pollfd fds[2] = {{sources.bell, POLLIN, 0}, {sources.client, sources.client_events, 0}};
  if (until == kNever) {
    ppoll(fds, 2, nullptr, nullptr);
    return;
  }
  const Duration left = std::max(until - MonotonicClock::now(), Duration::zero());
  timespec timeout{};
  timeout.tv_sec = left / std::chrono::seconds(1);
  timeout.tv_nsec = (left % std::chrono::seconds(1)).count();
  ppoll(fds, 2, &timeout, nullptr);
}

void* Main(void* argument) {
  auto& work = *static_cast<AgentThread::Work*>(argument);
  for (std::optional<TimePoint> wake_at = TimePoint{}; wake_at;) {
    Sleep(work.WhatToAwait(), *wake_at);
    wake_at = work.Attend(MonotonicClock::now());
  }
  return nullptr;
}

}  // namespace

int PosixAgentThread::Start(Work& work) { return StartDetachedThread("xsched-agent", &Main, &work); }

}  // namespace xsched::preempt
