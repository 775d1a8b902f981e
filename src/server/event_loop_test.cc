#include "server/event_loop.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class EventLoopTest : public ::testing::Test {
 protected:
  SavedSignalMask mask_;
  EventLoop loop_;
  UniqueFd event_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

TEST_F(EventLoopTest, what_is_watched_is_reported_with_its_tag) {
  ASSERT_TRUE(loop_.Watch(event_.get(), EPOLLIN, 7));
  EXPECT_THAT(loop_.Wait(0), IsEmpty());
  eventfd_write(event_.get(), 1);
  EXPECT_THAT(loop_.Wait(0), ElementsAre(7));
  eventfd_t value = 0;
  EXPECT_EQ(eventfd_read(event_.get(), &value), 0) << "the loop has not read it";
}

TEST_F(EventLoopTest, a_second_watch_of_a_descriptor_replaces_the_first) {
  eventfd_write(event_.get(), 1);
  ASSERT_TRUE(loop_.Watch(event_.get(), EPOLLIN, 7));
  ASSERT_TRUE(loop_.Watch(event_.get(), EPOLLIN, 8));
  EXPECT_THAT(loop_.Wait(0), ElementsAre(8));
  ASSERT_TRUE(loop_.Watch(event_.get(), 0, 8));
  EXPECT_THAT(loop_.Wait(0), IsEmpty());
}

TEST_F(EventLoopTest, a_watch_that_has_ended_reports_nothing_though_others_have_the_descriptor) {
  ASSERT_TRUE(loop_.Watch(event_.get(), EPOLLIN, 7));
  UniqueFd copy(dup(event_.get()));
  loop_.Unwatch(event_.get());
  event_.Reset();
  eventfd_write(copy.get(), 1);
  EXPECT_THAT(loop_.Wait(0), IsEmpty());
}

TEST_F(EventLoopTest, what_cannot_be_watched_is_refused) { EXPECT_FALSE(loop_.Watch(-1, EPOLLIN, 7)); }

TEST_F(EventLoopTest, it_says_that_a_child_may_have_ended_at_first_and_when_one_does) {
  EXPECT_TRUE(loop_.TakeChildEnd());
  loop_.Wait(0);
  EXPECT_FALSE(loop_.TakeChildEnd());
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_THAT(loop_.Wait(10'000), IsEmpty());
  EXPECT_TRUE(loop_.TakeChildEnd());
  EXPECT_FALSE(loop_.TakeChildEnd());
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(EventLoopTest, it_wakes_at_the_earliest_of_the_times_that_it_was_given) {
  const TimePoint start = MonotonicClock::now();
  loop_.WakeAt(start + 1h);
  loop_.WakeAt(start + 5ms);
  loop_.WakeAt(start + 2h);
  loop_.WakeAt(kNever);
  EXPECT_THAT(loop_.Wait(10'000), IsEmpty());
  const Duration waited = MonotonicClock::now() - start;
  EXPECT_GE(waited, 5ms);
  EXPECT_LT(waited, 5s);
}

TEST_F(EventLoopTest, a_time_that_has_passed_wakes_it_at_once) {
  loop_.WakeAt(TimePoint{});
  const TimePoint start = MonotonicClock::now();
  loop_.Wait(10'000);
  EXPECT_LT(MonotonicClock::now() - start, 5s);
}

TEST_F(EventLoopTest, a_signal_asks_the_server_to_end) {
  for (int signal : {SIGTERM, SIGINT}) {
    EventLoop loop;
    loop.Wait(0);
    EXPECT_FALSE(loop.end_requested());
    raise(signal);
    EXPECT_THAT(loop.Wait(0), IsEmpty());
    EXPECT_TRUE(loop.end_requested());
    EXPECT_FALSE(loop.TakeHangup());
  }
}

TEST_F(EventLoopTest, a_hangup_is_reported_once_with_its_sender_and_ends_nothing) {
  raise(SIGHUP);
  EXPECT_THAT(loop_.Wait(0), IsEmpty());
  EXPECT_FALSE(loop_.end_requested());
  const std::optional<SignalSender> sender = loop_.TakeHangup();
  ASSERT_TRUE(sender);
  EXPECT_EQ(sender->pid, getpid());
  EXPECT_EQ(sender->uid, getuid());
  EXPECT_FALSE(loop_.TakeHangup());
}

}  // namespace
}  // namespace xsched::server::testing
