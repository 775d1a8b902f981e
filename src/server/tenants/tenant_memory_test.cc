// A tenant's account of memory, from both ends: the server's, and those of the tenant's processes.
#include "server/tenants/tenant_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

namespace xsched::server {
namespace {

constexpr XDevice kDevice = 0x1'0000'0300;
constexpr XDevice kOther = 0x1'0000'0400;

// A process: its sum, and its part in the account.
struct Process {
  explicit Process(TenantMemory& account) : slot(account.TakeSlot().value()) {
    EXPECT_TRUE(share.Join(account.memfd(), slot));
  }
  void Has(uint64_t bytes, XDevice device = kDevice) {
    own = bytes;
    share.Update(device, own);
  }

  uint32_t slot;
  ipc::TenantMemoryShare share;
  std::atomic<uint64_t> own{0};
};

class TenantMemoryTest : public testing::Test {
 protected:
  std::shared_ptr<TenantMemory> account_ = *TenantMemory::Create(1000);
};

TEST_F(TenantMemoryTest, is_what_all_processes_of_the_tenant_have_of_a_device) {
  Process one(*account_);
  Process two(*account_);
  one.Has(300);
  two.Has(400);
  two.Has(50, kOther);
  EXPECT_EQ(one.share.Together(kDevice), 700u);
  EXPECT_EQ(one.share.Together(kOther), 50u);
  EXPECT_EQ(account_->MostUsed(), 700u);
  EXPECT_EQ(one.share.limit(), 1000u);
  two.Has(0);
  EXPECT_EQ(one.share.Together(kDevice), 300u);
}

TEST_F(TenantMemoryTest, another_limit_counts_at_once_in_every_process) {
  const Process process(*account_);
  account_->SetLimit(500);
  EXPECT_EQ(process.share.limit(), 500u);
  account_->SetLimit(0);
  EXPECT_EQ(process.share.limit(), ipc::kNoMemoryLimit);
}

TEST_F(TenantMemoryTest, what_a_process_had_that_has_ended_counts_no_more) {
  const Process remains(*account_);
  {
    Process ends(*account_);
    ends.Has(600);
    EXPECT_EQ(remains.share.Together(kDevice), 600u);
    const MemorySlot slot(account_, ends.slot);
  }
  EXPECT_EQ(remains.share.Together(kDevice), 0u);
  const Process next(*account_);
  EXPECT_EQ(next.slot, 1u) << "the lowest one is taken again";
  EXPECT_EQ(next.share.Together(kDevice), 0u) << "without what it had";
}

TEST_F(TenantMemoryTest, an_account_that_has_ended_takes_no_memory_though_a_process_keeps_it) {
  Process process(*account_);
  process.Has(300);
  const UniqueFd kept(dup(account_->memfd()));
  account_.reset();
  struct stat status {};
  ASSERT_EQ(fstat(kept.get(), &status), 0);
  EXPECT_EQ(status.st_blocks, 0);
  EXPECT_EQ(process.share.limit(), ipc::kNoMemoryLimit);
}

TEST_F(TenantMemoryTest, a_process_that_is_of_another_tenant_now_does_not_disturb_the_former_one) {
  Process moved(*account_);
  moved.Has(600);
  account_->SilenceSlot(moved.slot);
  const Process next(*account_);
  EXPECT_NE(next.slot, moved.slot);
  moved.Has(700);  // it does not know yet
  EXPECT_EQ(next.share.Together(kDevice), 0u);
}

TEST_F(TenantMemoryTest, has_a_place_for_a_limited_number_of_processes) {
  for (int i = 0; i < ipc::kMaxMemoryProcesses; ++i) EXPECT_TRUE(account_->TakeSlot());
  EXPECT_FALSE(account_->TakeSlot());
  account_->FreeSlot(7);
  EXPECT_EQ(account_->TakeSlot(), 7u);
}

TEST_F(TenantMemoryTest, a_process_that_has_left_has_no_limit_and_does_not_write_any_more) {
  Process left(*account_);
  const Process remains(*account_);
  left.Has(300);
  left.share.Leave();
  EXPECT_EQ(left.share.limit(), ipc::kNoMemoryLimit);
  left.Has(400);
  EXPECT_EQ(left.share.Together(kDevice), 0u);
  EXPECT_EQ(remains.share.Together(kDevice), 300u) << "until the server frees its slot";
}

// Threads allocate and free while servers come and go: at the end, the last account has the true sum.
TEST_F(TenantMemoryTest, an_account_that_is_joined_while_threads_allocate_has_the_true_sum) {
  ipc::TenantMemoryShare share;
  std::atomic<uint64_t> own{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!ends) {
        own.fetch_add(10);
        share.Update(kDevice, own);
        own.fetch_sub(9);
        share.Update(kDevice, own);
      }
    });
  }
  while (own.load() == 0) std::this_thread::yield();
  std::vector<std::shared_ptr<TenantMemory>> accounts;
  for (int i = 0; i < 200; ++i) {
    accounts.push_back(*TenantMemory::Create(1000));
    ASSERT_TRUE(share.Join(accounts.back()->memfd(), accounts.back()->TakeSlot().value()));
    share.Update(kDevice, own);
    if (i % 3 == 0) share.Leave();
  }
  const std::shared_ptr<TenantMemory> last = *TenantMemory::Create(1000);
  ASSERT_TRUE(share.Join(last->memfd(), last->TakeSlot().value()));
  share.Update(kDevice, own);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(own.load(), 0u);
  EXPECT_EQ(last->MostUsed(), own.load());
}

TEST_F(TenantMemoryTest, a_forked_child_leaves_without_its_parent) {
  Process parent(*account_);
  parent.Has(300);
  const pid_t child = fork();
  if (child == 0) {
    parent.share.Leave();
    parent.Has(1);
    _exit(parent.share.limit() == ipc::kNoMemoryLimit ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(account_->MostUsed(), 300u);
  parent.Has(400);
  EXPECT_EQ(account_->MostUsed(), 400u);
}

// ---- hostile processes ----

TEST_F(TenantMemoryTest, cannot_be_taken_from_under_the_server_nor_kept_from_others) {
  EXPECT_NE(ftruncate(account_->memfd(), 0), 0);
  EXPECT_NE(fcntl(account_->memfd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  const Process still(*account_);
}

TEST_F(TenantMemoryTest, overwritten_with_anything_is_no_harm_to_the_server) {
  Process honest(*account_);
  void* memory =
      mmap(nullptr, sizeof(ipc::TenantMemoryTable), PROT_READ | PROT_WRITE, MAP_SHARED, account_->memfd(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  memset(memory, 0xff, sizeof(ipc::TenantMemoryTable));
  account_->MostUsed();
  honest.Has(5);  // its devices are gone: it does not count
  EXPECT_EQ(account_->TakeSlot(), 1u) << "which are taken is not read there";
  account_->SetLimit(10);
  EXPECT_EQ(honest.share.limit(), 10u);
  munmap(memory, sizeof(ipc::TenantMemoryTable));
}

}  // namespace
}  // namespace xsched::server
