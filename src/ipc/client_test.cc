#include "ipc/client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace xsched::ipc {
namespace {

// ---- paths ----

class Paths : public ::testing::Test {
 protected:
  Paths() {
    char name[] = "/tmp/xsched-paths-XXXXXX";
    folder_ = mkdtemp(name);
    unsetenv("XSCHED_SOCKET");
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~Paths() override {
    std::filesystem::remove_all(folder_);
    unsetenv("XDG_RUNTIME_DIR");
    unsetenv("XSCHED_SOCKET");
  }
  static UniqueFd ListenAt(const std::string& path) {
    UniqueFd listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener.get(), 4), 0);
    return listener;
  }

  std::string folder_;
};

TEST_F(Paths, the_environment_variable_comes_first) {
  setenv("XSCHED_SOCKET", "/some/where.sock", 1);
  EXPECT_STREQ(FindServerSocket().text, "/some/where.sock");
}

TEST_F(Paths, the_users_server_comes_before_the_systems) {
  std::filesystem::create_directory(folder_ + "/xsched");
  UniqueFd listener = ListenAt(folder_ + "/xsched/xserver.sock");
  EXPECT_EQ(FindServerSocket().text, folder_ + "/xsched/xserver.sock");
  EXPECT_STREQ(UserServerSocket().text, FindServerSocket().text);
}

TEST_F(Paths, without_a_runtime_folder_the_users_path_is_in_tmp) {
  std::string expected = "/tmp/xsched-" + std::to_string(geteuid()) + "/xserver.sock";
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(UserServerSocket().text, expected);
  setenv("XDG_RUNTIME_DIR", "not/absolute", 1);
  EXPECT_EQ(UserServerSocket().text, expected);
}

TEST_F(Paths, a_folder_to_which_others_may_write_is_not_looked_into) {
  std::filesystem::create_directory(folder_ + "/xsched");
  UniqueFd listener = ListenAt(folder_ + "/xsched/xserver.sock");
  for (mode_t mode : {0777, 0775, 01777}) {
    ASSERT_EQ(chmod((folder_ + "/xsched").c_str(), mode), 0);
    EXPECT_STREQ(FindServerSocket().text, SystemServerSocket().text) << mode;
    Result<> checked = CheckUserServerFolder();
    ASSERT_FALSE(checked);
    EXPECT_NE(std::string(checked.error().text()).find(folder_ + "/xsched"), std::string::npos);
  }
  ASSERT_EQ(chmod((folder_ + "/xsched").c_str(), 0755), 0);
  EXPECT_EQ(FindServerSocket().text, folder_ + "/xsched/xserver.sock");
  EXPECT_TRUE(CheckUserServerFolder());
}

// These tests run as the first user of namespaces of their own, where /tmp and /run are empty: as in a new
// system, whoever runs them, and whatever server the machine has.
class PathsInNamespace : public Paths {
 protected:
  // Runs `test` in a child process.
  template <typename Test>
  void InNamespace(Test&& test) {
    const pid_t child = fork();
    if (child == 0) {
      if (!Enter()) _exit(kNotPossible);
      test();
      fflush(stdout);
      _exit(HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotPossible)
      GTEST_SKIP() << "this system allows neither root nor user namespaces";
    EXPECT_EQ(status, 0);
  }
  // Makes `path` a folder of another user. Only root can give a folder away. For other users, /usr, which
  // belongs to root, is mounted there.
  static bool GiveAway(const std::string& path) {
    return lchown(path.c_str(), 54321, 54321) == 0 ||
           mount("/usr", path.c_str(), nullptr, MS_BIND, nullptr) == 0;
  }

 private:
  static constexpr int kNotPossible = 77;

  static void Write(const char* file, const std::string& text) { std::ofstream(file) << text; }
  bool Enter() const {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(user == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return false;
    if (user != 0) {
      Write("/proc/self/setgroups", "deny");
      Write("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
      Write("/proc/self/uid_map", "0 " + std::to_string(user) + " 1");
    }
    return geteuid() == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", "/tmp", "tmpfs", 0, nullptr) == 0 &&
           mount("none", "/run", "tmpfs", 0, nullptr) == 0 && mkdir(folder_.c_str(), 0700) == 0;
  }
};

TEST_F(PathsInNamespace, a_folder_that_another_user_has_made_is_not_looked_into) {
  InNamespace([this] {
    const std::string folder = folder_ + "/xsched";
    std::filesystem::create_directory(folder);
    UniqueFd listener = ListenAt(folder + "/xserver.sock");
    EXPECT_EQ(FindServerSocket().text, folder + "/xserver.sock");
    ASSERT_TRUE(GiveAway(folder));
    struct stat made {};
    ASSERT_EQ(stat(folder.c_str(), &made), 0);
    EXPECT_STREQ(FindServerSocket().text, SystemServerSocket().text);
    EXPECT_NE(std::string(CheckUserServerFolder().error().text())
                  .find("belongs to user " + std::to_string(made.st_uid)),
              std::string::npos);
  });
}

TEST_F(PathsInNamespace, another_users_link_to_our_folder_is_not_looked_into) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make another user's link";
  InNamespace([this] {
    std::filesystem::create_directory(folder_ + "/ours");
    std::filesystem::create_directory_symlink(folder_ + "/ours", folder_ + "/xsched");
    EXPECT_TRUE(CheckUserServerFolder()) << "it is ours still";
    ASSERT_TRUE(GiveAway(folder_ + "/xsched"));
    EXPECT_FALSE(CheckUserServerFolder());
  });
}

TEST_F(PathsInNamespace, a_runtime_folder_of_another_user_is_not_ours_because_the_environment_says_so) {
  InNamespace([this] {
    EXPECT_EQ(UserServerSocket().text, folder_ + "/xsched/xserver.sock");
    ASSERT_TRUE(GiveAway(folder_));
    EXPECT_STREQ(UserServerSocket().text, "/tmp/xsched-0/xserver.sock");
  });
}

TEST_F(PathsInNamespace, where_there_is_no_server_the_path_is_one_that_nobody_else_can_make) {
  InNamespace([this] {
    EXPECT_EQ(FindServerSocket().text, folder_ + "/xsched/xserver.sock");
    unsetenv("XDG_RUNTIME_DIR");
    EXPECT_STREQ(FindServerSocket().text, SystemServerSocket().text);
  });
}

TEST_F(PathsInNamespace, what_a_killed_server_has_left_hides_no_other_server) {
  InNamespace([this] {
    const std::string user = folder_ + "/xsched/xserver.sock";
    std::filesystem::create_directory(folder_ + "/xsched");
    ListenAt(user).Reset();
    EXPECT_EQ(FindServerSocket().text, user) << "there is no other";
    std::filesystem::create_directory("/run/xsched");
    const UniqueFd system = ListenAt(SystemServerSocket().text);
    EXPECT_STREQ(FindServerSocket().text, SystemServerSocket().text);
    std::filesystem::remove(user);
    const UniqueFd again = ListenAt(user);
    EXPECT_EQ(FindServerSocket().text, user) << "it lives";
  });
}

TEST_F(PathsInNamespace, a_folder_in_tmp_that_another_user_has_made_beforehand_is_not_looked_into) {
  InNamespace([] {
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::create_directory("/tmp/xsched-0");
    UniqueFd listener = ListenAt("/tmp/xsched-0/xserver.sock");
    EXPECT_STREQ(FindServerSocket().text, "/tmp/xsched-0/xserver.sock");
    ASSERT_TRUE(GiveAway("/tmp/xsched-0"));
    EXPECT_STREQ(FindServerSocket().text, SystemServerSocket().text);
    EXPECT_FALSE(CheckUserServerFolder());
  });
}

TEST_F(Paths, a_path_that_is_too_long_is_an_error_and_not_a_shorter_path) {
  setenv("XSCHED_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_STREQ(FindServerSocket().text, "");
  auto connection = ConnectToServer(FindServerSocket());
  ASSERT_FALSE(connection);
  EXPECT_NE(std::string(connection.error().text()).find("too long"), std::string::npos);
}

TEST_F(Paths, the_error_names_the_path_when_nobody_listens) {
  setenv("XSCHED_SOCKET", (folder_ + "/none.sock").c_str(), 1);
  auto connection = ConnectToServer(FindServerSocket());
  ASSERT_FALSE(connection);
  EXPECT_NE(std::string(connection.error().text()).find(folder_ + "/none.sock"), std::string::npos);
}

TEST_F(Paths, a_connection_neither_blocks_nor_is_inherited) {
  UniqueFd listener = ListenAt(folder_ + "/s");
  setenv("XSCHED_SOCKET", (folder_ + "/s").c_str(), 1);
  auto connection = ConnectToServer(FindServerSocket());
  ASSERT_TRUE(connection) << connection.error().text();
  EXPECT_NE(fcntl(connection->get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(fcntl(connection->get(), F_GETFL) & O_NONBLOCK, 0);
}

// ---- packets ----

class Packets : public ::testing::Test {
 protected:
  Packets() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    here_.Reset(ends[0]);
    there_.Reset(ends[1]);
  }
  Received Receive() { return ReceivePacket(there_.get(), packet_); }

  UniqueFd here_;
  UniqueFd there_;
  Packet packet_;
};

int OpenDescriptors() {
  int count = 0;
  for ([[maybe_unused]] auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(Packets, a_message_arrives_as_it_was_sent) {
  Ping ping{};
  ping.cookie = 42;
  ASSERT_TRUE(Send(here_.get(), ping));
  ASSERT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(packet_.header().type, MessageType::kPing);
  EXPECT_EQ(packet_.As<Ping>().cookie, 42u);
  EXPECT_EQ(Receive(), Received::kNothing);
}

TEST_F(Packets, what_a_shorter_message_lacks_reads_as_zero) {
  SetHints full{};
  Prepare(full);
  full.queue_id = 7;
  full.hints.priority = 9;
  full.header.size = offsetof(SetHints, hints);
  ASSERT_TRUE(SendPacket(here_.get(), &full, full.header.size));
  ASSERT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(packet_.As<SetHints>().queue_id, 7u);
  EXPECT_EQ(packet_.As<SetHints>().hints.priority, 0);
}

TEST_F(Packets, descriptors_travel_and_are_not_inherited) {
  int fds[] = {here_.get(), there_.get()};
  ASSERT_TRUE(Send(here_.get(), Ping{}, fds, 2));
  ASSERT_EQ(Receive(), Received::kMessage);
  ASSERT_EQ(packet_.fd_count, 2);
  for (int i = 0; i < 2; ++i) EXPECT_NE(fcntl(packet_.fds[i].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Packets, all_descriptors_are_taken_and_closed_with_the_packet) {
  const int before = OpenDescriptors();
  const std::vector<int> fds(Packet::kMaxFds, here_.get());
  ASSERT_TRUE(Send(here_.get(), Ping{}, fds.data(), static_cast<int>(fds.size())));
  EXPECT_TRUE(NextHasDescriptors(there_.get()));
  EXPECT_EQ(Receive(), Received::kMessage);
  EXPECT_EQ(packet_.fd_count, Packet::kMaxFds);
  packet_ = Packet{};
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(Packets, it_can_be_seen_whether_the_next_one_has_descriptors) {
  EXPECT_FALSE(NextHasDescriptors(there_.get()));
  ASSERT_TRUE(Send(here_.get(), Ping{}));
  EXPECT_FALSE(NextHasDescriptors(there_.get()));
  EXPECT_EQ(Receive(), Received::kMessage);
}

TEST_F(Packets, too_short_too_long_and_dishonest_ones_are_malformed) {
  ASSERT_TRUE(SendPacket(here_.get(), "1234567", 7));
  EXPECT_EQ(Receive(), Received::kMalformed);
  std::vector<char> big(kMaxMessage + 1);
  Header header{MessageType::kPing, 0, kMaxMessage + 1};
  memcpy(big.data(), &header, sizeof header);
  ASSERT_TRUE(SendPacket(here_.get(), big.data(), big.size()));
  EXPECT_EQ(Receive(), Received::kMalformed);
  header.size = 12;
  ASSERT_TRUE(SendPacket(here_.get(), &header, sizeof header));
  EXPECT_EQ(Receive(), Received::kMalformed);
}

TEST_F(Packets, the_end_of_the_other_end_is_seen_and_raises_no_signal) {
  here_.Reset();
  EXPECT_EQ(Receive(), Received::kClosed);
  EXPECT_FALSE(Send(there_.get(), Ping{}));  // SIGPIPE would end the test
}

TEST_F(Packets, a_full_buffer_can_be_waited_for) {
  while (Send(here_.get(), Ping{})) {
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(SendWithin(here_.get(), 20, Ping{}));
  while (Receive() == Received::kMessage) {
  }
  EXPECT_TRUE(SendWithin(here_.get(), 20, Ping{}));
  there_.Reset();
  EXPECT_FALSE(SendWithin(here_.get(), 20, Ping{}));
}

}  // namespace
}  // namespace xsched::ipc
