#include "preempt/scheduling/agent_thread.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace xsched::preempt {
namespace {

// Attends until it is told to end. Never destroyed, because its thread may use it.
class FakeWork final : public AgentThread::Work {
 public:
  FakeWork() {
    sem_init(&attended_, 0, 0);
    sem_init(&go_on_, 0, 0);
  }
  Sources WhatToAwait() override { return {bell, client, POLLIN}; }
  std::optional<TimePoint> Attend(TimePoint now) override {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    blocks_signals = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGPROF) == 1;
    last = now;
    sem_post(&attended_);
    sem_wait(&go_on_);
    std::lock_guard lock(mutex_);
    return next_;
  }
  // Returns when the thread attends. Then it waits for GoOn.
  void AwaitAttending() { sem_wait(&attended_); }
  void GoOn(std::optional<TimePoint> when) {
    {
      // A thread that has ended may have read it last.
      std::lock_guard lock(mutex_);
      next_ = when;
    }
    sem_post(&go_on_);
  }
  bool attends() {
    int count = 0;
    sem_getvalue(&attended_, &count);
    return count != 0;
  }

  const int bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const int client = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  TimePoint last{};
  bool blocks_signals = false;

 private:
  sem_t attended_;
  sem_t go_on_;
  std::mutex mutex_;
  std::optional<TimePoint> next_;
};

void Ring(int fd) { ASSERT_EQ(eventfd_write(fd, 1), 0); }
void Silence(int fd) {
  eventfd_t count;
  ASSERT_EQ(eventfd_read(fd, &count), 0);
}

TEST(AgentThreadTest, it_attends_when_it_starts_when_a_descriptor_is_ready_and_when_it_is_time) {
  static auto& work = *new FakeWork;
  PosixAgentThread thread;
  ASSERT_EQ(thread.Start(work), 0);
  work.AwaitAttending();
  EXPECT_TRUE(work.blocks_signals) << "signals are the program's";
  for (const int fd : {work.bell, work.client}) {
    work.GoOn(kNever);
    EXPECT_FALSE(work.attends()) << "nothing is ready";
    Ring(fd);
    work.AwaitAttending();
    Silence(fd);
  }
  const TimePoint soon = MonotonicClock::now() + std::chrono::milliseconds(2);
  work.GoOn(soon);
  work.AwaitAttending();
  EXPECT_GE(work.last, soon);
  work.GoOn(std::nullopt);
}

TEST(AgentThreadTest, a_time_that_has_passed_means_at_once) {
  static auto& work = *new FakeWork;
  PosixAgentThread thread;
  ASSERT_EQ(thread.Start(work), 0);
  for (int i = 0; i < 3; ++i) {
    work.AwaitAttending();
    work.GoOn(i < 2 ? std::optional(TimePoint{}) : std::nullopt);
  }
}

TEST(AgentThreadTest, a_work_that_has_ended_can_be_started_again) {
  static auto& work = *new FakeWork;
  PosixAgentThread thread;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(thread.Start(work), 0);
    work.AwaitAttending();
    work.GoOn(std::nullopt);
  }
}

}  // namespace
}  // namespace xsched::preempt
