// What a process may take by the accounts of its program and of its tenant together.
#include "preempt/scheduling/memory_limit.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/system_calls.h"
#include "preempt/queue/testing/fake_process.h"

namespace xsched::preempt::testing {
namespace {

constexpr XDevice kDevice = 0x1'0000'0300;

// As the server makes it. All slots are in use.
class Account {
 public:
  explicit Account(uint64_t limit) : memfd_(MemfdCreate("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    EXPECT_EQ(ftruncate(memfd(), sizeof(ipc::TenantMemoryTable)), 0);
    EXPECT_EQ(fcntl(memfd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    void* memory =
        mmap(nullptr, sizeof(ipc::TenantMemoryTable), PROT_READ | PROT_WRITE, MAP_SHARED, memfd(), 0);
    table = static_cast<ipc::TenantMemoryTable*>(memory);
    table->version = ipc::TenantMemoryTable::kVersion;
    table->limit = limit;
    table->slots_in_use = 3;
    for (ipc::TenantMemorySlot& slot : table->slots) slot.in_use = 1;
  }
  ~Account() { munmap(table, sizeof *table); }
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  int memfd() const { return memfd_.get(); }
  uint64_t Together() const { return table->Together(table->Device(kDevice)); }
  // Another process of the tenant has so much.
  void OtherHas(uint64_t bytes) { table->slots[2].used[table->Device(kDevice)] = bytes; }

  ipc::TenantMemoryTable* table;

 private:
  UniqueFd memfd_;
};

class MemoryLimitTest : public FakeProcess {
 protected:
  bool Open(uint64_t of_program = ipc::kNoMemoryLimit) {
    if (!limit_.Open(nullptr, of_program)) return false;
    device_ = limit_.Device(kDevice);
    return true;
  }

  ControlMemory memory_{table, state};
  MemoryLimit limit_{memory_};
  int device_ = -1;
};

TEST_F(MemoryLimitTest, the_tenants_other_processes_count) {
  Account account(1000);
  ASSERT_TRUE(Open());
  limit_.JoinTenant(account.memfd(), 0);
  account.OtherHas(700);
  EXPECT_EQ(limit_.limit(), 1000u);
  EXPECT_EQ(limit_.Left(device_), 300u);
  EXPECT_FALSE(limit_.Take(device_, 301));
  EXPECT_EQ(account.Together(), 700u) << "nothing is taken then";
  EXPECT_TRUE(limit_.Take(device_, 300));
  EXPECT_FALSE(limit_.Take(device_, 1));
  limit_.GiveBack(device_, 100);
  EXPECT_EQ(account.Together(), 900u);
  account.OtherHas(0);
  EXPECT_TRUE(limit_.Take(device_, 800));
}

TEST_F(MemoryLimitTest, the_lesser_of_program_and_tenant_counts) {
  Account account(1000);
  ASSERT_TRUE(Open(400));
  limit_.JoinTenant(account.memfd(), 0);
  EXPECT_EQ(limit_.limit(), 400u);
  EXPECT_FALSE(limit_.Take(device_, 401));
  account.OtherHas(900);
  EXPECT_EQ(limit_.Left(device_), 100u);
  EXPECT_FALSE(limit_.Take(device_, 101));
  EXPECT_TRUE(limit_.Take(device_, 100));
  limit_.LeaveTenant();
  EXPECT_TRUE(limit_.Take(device_, 300)) << "the program's limit needs no server";
  EXPECT_FALSE(limit_.Take(device_, 1));
}

TEST_F(MemoryLimitTest, what_the_process_had_before_counts_in_an_account_that_it_joins_later) {
  ASSERT_TRUE(Open());
  EXPECT_TRUE(limit_.Take(device_, 5000)) << "no server has said anything yet";
  Account account(1000);
  limit_.JoinTenant(account.memfd(), 1);
  limit_.Welcomed();
  EXPECT_EQ(account.Together(), 5000u);
  EXPECT_FALSE(limit_.Take(device_, 1));
  EXPECT_EQ(limit_.Left(device_), 0u);
  limit_.GiveBack(device_, 4500);
  EXPECT_TRUE(limit_.Take(device_, 500));
}

TEST_F(MemoryLimitTest, without_the_server_there_is_no_limit_and_the_next_one_gets_the_sums) {
  ASSERT_TRUE(Open());
  {
    Account lost(1000);
    limit_.JoinTenant(lost.memfd(), 0);
    EXPECT_TRUE(limit_.Take(device_, 1000));
  }
  limit_.LeaveTenant();
  EXPECT_TRUE(limit_.Take(device_, 500));
  EXPECT_EQ(limit_.limit(), ipc::kNoMemoryLimit);
  Account next(2000);
  limit_.JoinTenant(next.memfd(), 0);
  EXPECT_EQ(next.Together(), 1500u);
  EXPECT_FALSE(limit_.Take(device_, 501));
  EXPECT_TRUE(limit_.Take(device_, 500));
}

TEST_F(MemoryLimitTest, a_process_whose_server_limits_no_tenant_need_not_count) {
  ASSERT_TRUE(Open());
  EXPECT_FALSE(limit_.IsPointless()) << "nobody has said so yet";
  limit_.Welcomed();
  EXPECT_TRUE(limit_.IsPointless());
  Account account(1000);
  limit_.JoinTenant(account.memfd(), 0);
  limit_.Welcomed();
  EXPECT_FALSE(limit_.IsPointless()) << "another server, before anything was missed";
}

TEST_F(MemoryLimitTest, a_process_that_has_not_counted_joins_no_account) {
  ASSERT_TRUE(Open());
  limit_.Welcomed();
  limit_.GiveUp();
  Account account(1000);
  limit_.JoinTenant(account.memfd(), 0);
  EXPECT_EQ(limit_.limit(), ipc::kNoMemoryLimit);
}

TEST_F(MemoryLimitTest, with_a_limit_of_the_program_it_counts_in_any_case) {
  ASSERT_TRUE(Open(400));
  limit_.Welcomed();
  EXPECT_FALSE(limit_.IsPointless());
}

TEST_F(MemoryLimitTest, an_account_that_is_none_leaves_the_process_without_a_limit) {
  ASSERT_TRUE(Open());
  limit_.JoinTenant(STDERR_FILENO, 0);
  EXPECT_EQ(limit_.limit(), ipc::kNoMemoryLimit);
  EXPECT_TRUE(limit_.Take(device_, 5000));
}

// One after the other they could all have it. At the same time, some are refused, and never all of them.
TEST_F(MemoryLimitTest, threads_never_have_more_than_the_limit_together) {
  constexpr uint64_t kLimit = 1000;
  Account account(kLimit);
  ASSERT_TRUE(Open());
  limit_.JoinTenant(account.memfd(), 0);
  std::atomic<uint64_t> have{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        if (!limit_.Take(device_, 400)) continue;
        EXPECT_LE(have.fetch_add(400) + 400, kLimit);
        ++taken;
        have.fetch_sub(400);
        limit_.GiveBack(device_, 400);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(taken, 0);
  EXPECT_EQ(account.Together(), 0u);
}

}  // namespace
}  // namespace xsched::preempt::testing
