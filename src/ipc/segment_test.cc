#include "ipc/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace {

bool shared_memory_is_huge = false;

}  // namespace

// Replaces the C library's, and behaves as if /sys/kernel/mm/transparent_hugepage/shmem_enabled were
// "always".
int fstat(int fd, struct stat* status) noexcept {
  const auto result = static_cast<int>(syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH));
  if (result == 0 && shared_memory_is_huge) status->st_blksize = 2 << 20;
  return result;
}

namespace xsched::ipc {
namespace {

UniqueFd Memfd(size_t size, int seals) {
  UniqueFd memfd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(memfd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(memfd.get(), F_ADD_SEALS, seals), 0);
  return memfd;
}

TEST(Segment, both_ends_see_the_same_words) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  auto mapped = MapSegment(owned->memfd.get());
  ASSERT_TRUE(mapped) << mapped.error().text();
  ASSERT_NE(owned->mapping.get(), mapped->get());
  owned->mapping->blocks[kMaxQueues - 1].submitted.store(7);
  EXPECT_EQ((*mapped)->blocks[kMaxQueues - 1].submitted.load(), 7u);
  (*mapped)->blocks[3].gate.store(kGateRun);
  EXPECT_EQ(owned->mapping->blocks[3].gate.load(), kGateRun);
}

TEST(Segment, it_can_neither_shrink_nor_grow_nor_lose_its_seals) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  EXPECT_NE(ftruncate(owned->memfd.get(), 4096), 0);
  EXPECT_NE(ftruncate(owned->memfd.get(), 2 * kSegmentSize), 0);
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(fcntl(owned->memfd.get(), F_GET_SEALS) & kSeals, kSeals);
}

// The kernel also sends a signal that ends a program (ulimit -f).
TEST(Segment, a_process_that_may_not_make_files_of_its_size_gets_an_error_and_lives) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{kSegmentSize - 1, kSegmentSize - 1};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    _exit(CreateSegment() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Segment, a_child_program_does_not_inherit_it) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  EXPECT_NE(fcntl(owned->memfd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Segment, an_unused_one_uses_a_page) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  struct stat status {};
  ASSERT_EQ(fstat(owned->memfd.get(), &status), 0);
  EXPECT_LE(status.st_blocks * 512, 4096);
}

TEST(Segment, one_whose_pages_the_kernel_makes_huge_by_itself_is_as_good) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  shared_memory_is_huge = true;
  auto mapped = MapSegment(owned->memfd.get());
  shared_memory_is_huge = false;
  EXPECT_TRUE(mapped) << mapped.error().text();
}

TEST(Segment, a_file_is_refused) {
  char path[] = "/tmp/xsched-segment-XXXXXX";
  UniqueFd file(mkostemp(path, O_CLOEXEC));
  unlink(path);
  ASSERT_EQ(ftruncate(file.get(), kSegmentSize), 0);
  EXPECT_FALSE(MapSegment(file.get()));
  EXPECT_FALSE(MapSegment(-1));
}

TEST(Segment, one_that_can_shrink_is_refused) {
  EXPECT_FALSE(MapSegment(Memfd(kSegmentSize, F_SEAL_GROW).get()));
  EXPECT_FALSE(MapSegment(Memfd(kSegmentSize, 0).get()));
}

TEST(Segment, one_that_cannot_be_written_is_refused) {
  UniqueFd memfd = Memfd(kSegmentSize, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE);
  EXPECT_FALSE(MapSegment(memfd.get()));
}

TEST(Segment, one_of_another_size_is_refused) {
  EXPECT_FALSE(MapSegment(Memfd(kSegmentSize - 4096, F_SEAL_GROW | F_SEAL_SHRINK).get()));
  EXPECT_FALSE(MapSegment(Memfd(kSegmentSize + 4096, F_SEAL_GROW | F_SEAL_SHRINK).get()));
  EXPECT_FALSE(MapSegment(Memfd(0, F_SEAL_GROW | F_SEAL_SHRINK).get()));
}

TEST(Segment, one_of_another_version_is_refused) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  owned->mapping->header.version = kSegmentVersion + 1;
  EXPECT_FALSE(MapSegment(owned->memfd.get()));
  owned->mapping->header.version = kSegmentVersion;
  owned->mapping->header.magic ^= 1;
  EXPECT_FALSE(MapSegment(owned->memfd.get()));
  owned->mapping->header.magic ^= 1;
  EXPECT_TRUE(MapSegment(owned->memfd.get()));
}

TEST(Doorbell, each_marked_queue_is_visited_once) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  UniqueFd bell(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  for (uint32_t index : {0u, 63u, 64u, 1023u, 63u}) RingScheduler(*owned->mapping.get(), index, bell.get());
  std::vector<uint32_t> seen;
  ForEachDirty(*owned->mapping.get(), [&](uint32_t index) { seen.push_back(index); });
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 63, 64, 1023}));
  ForEachDirty(*owned->mapping.get(), [&](uint32_t) { FAIL(); });
  uint64_t rings = 0;
  ASSERT_EQ(read(bell.get(), &rings, sizeof rings), static_cast<ssize_t>(sizeof rings));
  EXPECT_EQ(rings, 5u);
}

TEST(Doorbell, no_change_is_lost_between_two_threads) {
  auto owned = CreateSegment();
  ASSERT_TRUE(owned);
  Segment& segment = *owned->mapping.get();
  UniqueFd bell(eventfd(0, EFD_CLOEXEC));
  constexpr uint64_t kChanges = 100'000;
  std::thread client([&] {
    for (uint64_t i = 1; i <= kChanges; ++i) {
      segment.blocks[5].submitted.store(i, std::memory_order_release);
      RingScheduler(segment, 5, bell.get());
    }
  });
  uint64_t seen = 0;
  while (seen < kChanges) {
    uint64_t rings;
    // Blocks until the doorbell rings. If a change were lost, the test would hang here.
    ASSERT_EQ(read(bell.get(), &rings, sizeof rings), static_cast<ssize_t>(sizeof rings));
    ForEachDirty(segment, [&](uint32_t index) {
      ASSERT_EQ(index, 5u);
      uint64_t submitted = segment.blocks[5].submitted.load(std::memory_order_acquire);
      ASSERT_GE(submitted, seen);
      seen = submitted;
    });
  }
  client.join();
}

}  // namespace
}  // namespace xsched::ipc
