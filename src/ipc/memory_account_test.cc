#include "ipc/memory_account.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/pci_address.h"

namespace xsched::ipc {
namespace {

constexpr uint64_t kLimit = 1000;
constexpr XDevice kDevice = 0x1'0000'0300;
constexpr XDevice kOther = 0x1'0000'0400;

class MemoryAccountTest : public testing::Test {
 protected:
  MemoryAccountTest() {
    char name[] = "/tmp/memory_account_test.XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~MemoryAccountTest() override { std::filesystem::remove_all(folder_); }

  std::string NewFile(uint64_t limit = kLimit) {
    Result<MemoryAccountPath> path = CreateMemoryAccount(folder_.c_str(), limit);
    EXPECT_TRUE(path) << path.error().text();
    return path->text;
  }
  size_t Files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  // Another process, which does `use` with an account of its own and then waits until it is killed.
  template <typename Use>
  pid_t Start(const std::string& path, const Use& use) {
    int done[2];
    EXPECT_EQ(pipe(done), 0);
    const pid_t child = fork();
    if (child == 0) {
      MemoryAccount account;
      if (account.Open(path.c_str(), kLimit)) use(account);
      if (write(done[1], "", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(done[0], &byte, 1), 1);
    close(done[0]);
    close(done[1]);
    return child;
  }
  static void Kill(pid_t child, bool reap = true) {
    kill(child, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    if (reap) waitpid(child, nullptr, 0);
  }

  std::string folder_;
};

TEST_F(MemoryAccountTest, each_part_of_eight_divided_gpus_has_a_limit) {
  MemoryAccount account;
  ASSERT_TRUE(account.Open(NewFile().c_str(), kLimit));
  for (uint32_t gpu = 0; gpu < 8; ++gpu) {
    for (uint32_t part = 0; part < 8; ++part)
      EXPECT_GE(account.Device(PartOfDevice(kDevice + (gpu << 8), part)), 0) << gpu << ", " << part;
  }
}

TEST_F(MemoryAccountTest, gives_up_to_the_limit_and_no_byte_more) {
  MemoryAccount account;
  ASSERT_TRUE(account.Open(NewFile().c_str(), 1));
  EXPECT_EQ(account.limit(), kLimit) << "the file says it";
  const int device = account.Device(kDevice);
  EXPECT_TRUE(account.Take(device, 600));
  EXPECT_TRUE(account.Take(device, 400));
  EXPECT_FALSE(account.Take(device, 1));
  account.GiveBack(device, 1);
  EXPECT_TRUE(account.Take(device, 1));
  EXPECT_FALSE(account.Take(device, UINT64_MAX)) << "no overflow";
  EXPECT_EQ(account.Together(device), kLimit);
}

TEST_F(MemoryAccountTest, each_device_has_the_limit_for_itself) {
  MemoryAccount account;
  ASSERT_TRUE(account.Open(NewFile().c_str(), 1));
  EXPECT_TRUE(account.Take(account.Device(kDevice), kLimit));
  EXPECT_NE(account.Device(kDevice), account.Device(kOther));
  EXPECT_TRUE(account.Take(account.Device(kOther), kLimit));
  EXPECT_EQ(account.device(account.Device(kOther)), kOther);
  for (int i = 2; i < kMaxMemoryDevices; ++i) EXPECT_GE(account.Device(kOther + static_cast<XDevice>(i)), 0);
  EXPECT_EQ(account.Device(1), -1) << "there is no room for more devices";
}

TEST_F(MemoryAccountTest, without_a_file_a_process_has_the_limit_for_itself) {
  MemoryAccount account;
  ASSERT_TRUE(account.Open(nullptr, kLimit));
  EXPECT_TRUE(account.Take(account.Device(kDevice), kLimit));
  EXPECT_FALSE(account.Take(account.Device(kDevice), 1));
}

TEST_F(MemoryAccountTest, processes_share_one_limit) {
  const std::string path = NewFile();
  const pid_t child = Start(path, [](MemoryAccount& theirs) {
    theirs.Device(kOther);  // in another order
    theirs.Take(theirs.Device(kDevice), 700);
  });
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), kLimit));
  const int device = account.Device(kDevice);
  EXPECT_EQ(account.Together(device), 700u);
  EXPECT_EQ(account.Own(device), 0u);
  EXPECT_FALSE(account.Take(device, 301));
  EXPECT_TRUE(account.Take(device, 300));
  Kill(child);
}

TEST_F(MemoryAccountTest, what_a_killed_process_had_is_free_again) {
  const std::string path = NewFile();
  const pid_t child = Start(path, [](MemoryAccount& theirs) { theirs.Take(theirs.Device(kDevice), 700); });
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), kLimit));
  const int device = account.Device(kDevice);
  EXPECT_FALSE(account.Take(device, 500));
  Kill(child);
  EXPECT_TRUE(account.Take(device, 500));
}

TEST_F(MemoryAccountTest, a_process_that_its_parent_has_not_waited_for_counts_no_more_either) {
  const std::string path = NewFile();
  const pid_t child = Start(path, [](MemoryAccount& theirs) { theirs.Take(theirs.Device(kDevice), 700); });
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), kLimit));
  Kill(child, /*reap=*/false);
  account.DropEnded();
  EXPECT_EQ(account.Together(account.Device(kDevice)), 0u);
  waitpid(child, nullptr, 0);
}

TEST_F(MemoryAccountTest, a_forked_child_has_nothing_of_its_parents) {
  const std::string path = NewFile();
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), kLimit));
  const int device = account.Device(kDevice);
  ASSERT_TRUE(account.Take(device, 600));
  const pid_t child = fork();
  if (child == 0) {
    const bool reopened = static_cast<bool>(account.Reopen());
    const bool right =
        reopened && account.Own(device) == 0 && !account.Take(device, 401) && account.Take(device, 400);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(account.Own(device), 600u);
  EXPECT_TRUE(account.Take(device, 400)) << "the child has ended";
}

TEST_F(MemoryAccountTest, more_processes_than_there_are_slots_for_are_told_so) {
  const std::string path = NewFile();
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), kLimit));
  std::vector<pid_t> children;
  for (int i = 1; i < kMaxMemoryProcesses; ++i) children.push_back(Start(path, [](MemoryAccount&) {}));
  const pid_t last = fork();
  if (last == 0) {
    MemoryAccount more;
    _exit(more.Open(path.c_str(), kLimit) ? 1 : 0);
  }
  int status = 1;
  waitpid(last, &status, 0);
  EXPECT_EQ(status, 0);
  for (const pid_t child : children) Kill(child);
}

TEST_F(MemoryAccountTest, threads_never_have_more_than_the_limit_together) {
  MemoryAccount account;
  ASSERT_TRUE(account.Open(NewFile().c_str(), kLimit));
  const int device = account.Device(kDevice);
  std::atomic<uint64_t> held{0};
  std::atomic<bool> too_much{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::minstd_rand random(static_cast<unsigned>(i) + 1);
      for (int turn = 0; turn < 20'000; ++turn) {
        const uint64_t size = random() % 500;
        if (!account.Take(device, size)) continue;
        if (held.fetch_add(size) + size > kLimit) too_much = true;
        held.fetch_sub(size);
        account.GiveBack(device, size);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_much);
  EXPECT_EQ(account.Together(device), 0u);
}

// Against a model: a process has what it took and did not give back.
TEST_F(MemoryAccountTest, random_histories_are_those_of_the_model) {
  std::minstd_rand random(7);
  for (int history = 0; history < 50; ++history) {
    MemoryAccount account;
    const uint64_t limit = 1 + random() % 2000;
    ASSERT_TRUE(account.Open(NewFile(limit).c_str(), 1));
    std::vector<uint64_t> taken[2];
    uint64_t sum[2] = {0, 0};
    for (int step = 0; step < 200; ++step) {
      const int which = static_cast<int>(random() % 2);
      const int device = account.Device(which == 0 ? kDevice : kOther);
      if (random() % 3 != 0) {
        const uint64_t size = random() % 600;
        const bool fits = sum[which] + size <= limit;
        ASSERT_EQ(account.Take(device, size), fits);
        if (!fits) continue;
        taken[which].push_back(size);
        sum[which] += size;
      } else if (!taken[which].empty()) {
        account.GiveBack(device, taken[which].back());
        sum[which] -= taken[which].back();
        taken[which].pop_back();
      }
      ASSERT_EQ(account.Own(device), sum[which]);
      ASSERT_EQ(account.Together(device), sum[which]);
    }
  }
}

TEST_F(MemoryAccountTest, files_of_programs_that_have_ended_are_removed) {
  const pid_t child = fork();
  if (child == 0) _exit(CreateMemoryAccount(folder_.c_str(), kLimit) ? 0 : 1);
  waitpid(child, nullptr, 0);
  ASSERT_EQ(Files(), 1u);
  const std::string own = NewFile();
  EXPECT_EQ(Files(), 1u);
  NewFile();
  EXPECT_EQ(Files(), 2u) << "our own is in use";
}

TEST_F(MemoryAccountTest, a_file_that_is_missing_is_made_anew) {
  const std::string path = NewFile();
  std::filesystem::remove(path);
  MemoryAccount account;
  ASSERT_TRUE(account.Open(path.c_str(), 77));
  EXPECT_EQ(account.limit(), 77u);
}

// A file system that is full later would end the process at its next access.
TEST_F(MemoryAccountTest, there_is_room_for_all_of_a_file_or_it_is_not_made) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kNotPossible = 2;
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder_.c_str(), "tmpfs", 0, "size=8k") != 0)
      _exit(kNotPossible);
    _exit(CreateMemoryAccount(folder_.c_str(), kLimit) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(MemoryAccountTest, a_process_that_may_not_make_files_of_its_size_gets_an_error_and_lives) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{1, 1};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(CreateMemoryAccount(folder_.c_str(), kLimit) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(MemoryAccountTest, a_file_that_is_something_else_is_refused) {
  const std::string path = folder_ + "/memory-else";
  FILE* file = fopen(path.c_str(), "w");
  fputs("something else", file);
  fclose(file);
  MemoryAccount account;
  Result<> opened = account.Open(path.c_str(), kLimit);
  ASSERT_FALSE(opened);
  EXPECT_STREQ(opened.error().text(), "the account of memory is of another version");
  MemoryAccount linked;
  std::filesystem::create_symlink(NewFile(), folder_ + "/link");
  EXPECT_FALSE(linked.Open((folder_ + "/link").c_str(), kLimit)) << "another user could have made it";
}

}  // namespace
}  // namespace xsched::ipc
