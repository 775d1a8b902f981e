// Descriptors of which closing takes long: TCP sockets that linger, with unsent data.
#include "server/disposer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "server/limits.h"
#include "server/socket_closer.h"
#include "server/testing/lingering_socket.h"
#include "server/testing/test_client.h"

namespace xsched::server::testing {
namespace {

constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;

TEST(Disposer, closes_what_it_is_given) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  Disposer disposer;
  disposer.Take(kUser, UniqueFd(ends[1]));
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "the other end is closed";
}

TEST(Disposer, a_descriptor_that_takes_long_delays_those_of_its_user_alone) {
  LingeringSocket slow;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const UniqueFd reader(ends[0]);
  Disposer disposer;
  disposer.Take(kUser, slow.Release());
  disposer.Take(kOther, UniqueFd(ends[1]));
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0);
}

TEST(Disposer, is_full_for_a_user_whose_descriptors_cannot_be_closed_until_they_are) {
  LingeringSocket slow;
  Disposer disposer;
  disposer.Take(kUser, slow.Release());
  for (size_t i = 1; i < kMaxUndisposedOfUser; ++i) {
    EXPECT_FALSE(disposer.IsFull(kUser));
    disposer.Take(kUser, UniqueFd(dup(0)));
  }
  EXPECT_TRUE(disposer.IsFull(kUser));
  EXPECT_FALSE(disposer.IsFull(kOther));
  slow.LetGo();
  EXPECT_TRUE(Eventually([&] { return !disposer.IsFull(kUser); }));
}

TEST(Disposer, its_threads_end_with_it) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  std::thread([] {}).join();  // with the first one, a sanitizer starts another of its own, which stays
  const auto before = threads();
  {
    Disposer disposer;
    disposer.Take(kUser, UniqueFd(dup(0)));
  }
  // Without work, but with a disposer, they would stay for four seconds.
  EXPECT_TRUE(Eventually([&] { return threads() <= before; }, std::chrono::seconds(3)));
}

TEST(SocketCloser, is_not_held_up_by_a_socket_that_lingers) {
  LingeringSocket slow;
  SocketCloser closer;
  const TimePoint began = MonotonicClock::now();
  EXPECT_FALSE(closer.Close(slow.Release()));
  EXPECT_LT(MonotonicClock::now() - began, std::chrono::seconds(1)) << "it lingers for 20 s";
}

TEST(SocketCloser, closes_an_ordinary_socket) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd other(ends[1]);
  SocketCloser closer;
  EXPECT_TRUE(closer.Close(UniqueFd(ends[0])));
  char byte;
  EXPECT_EQ(recv(other.get(), &byte, 1, 0), 0);
}

}  // namespace
}  // namespace xsched::server::testing
