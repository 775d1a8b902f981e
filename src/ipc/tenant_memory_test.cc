// What a process does with a descriptor that is no account of its tenant's memory.
#include "ipc/tenant_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/system_calls.h"

namespace xsched::ipc {
namespace {

UniqueFd Memfd(size_t size, int seals) {
  UniqueFd memfd(MemfdCreate("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(memfd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(fcntl(memfd.get(), F_ADD_SEALS, seals), 0);
  return memfd;
}

std::string Refusal(int fd, uint32_t slot = 0) {
  TenantMemoryShare share;
  const Result<> joined = share.Join(fd, slot);
  EXPECT_EQ(share.limit(), kNoMemoryLimit);
  return joined ? "none" : joined.error().text();
}

constexpr int kSealed = F_SEAL_SHRINK | F_SEAL_GROW;

TEST(TenantMemoryShare, joins_only_an_account_that_nobody_can_shrink_and_of_its_version) {
  EXPECT_NE(Refusal(UniqueFd(eventfd(0, EFD_CLOEXEC)).get()).find("is not a memfd"), std::string::npos);
  EXPECT_EQ(Refusal(Memfd(sizeof(TenantMemoryTable), F_SEAL_GROW).get()),
            "the tenant's account of memory is not sealed against shrinking and growing");
  EXPECT_NE(Refusal(Memfd(4096, kSealed).get()).find("has 4096 bytes instead of"), std::string::npos);
  EXPECT_EQ(Refusal(Memfd(sizeof(TenantMemoryTable), kSealed | F_SEAL_FUTURE_WRITE).get()),
            "the tenant's account of memory is sealed against writing");
  EXPECT_EQ(Refusal(Memfd(sizeof(TenantMemoryTable), kSealed).get()),
            "the tenant's account of memory is of another version");
  EXPECT_EQ(Refusal(Memfd(sizeof(TenantMemoryTable), kSealed).get(), kMaxMemoryProcesses),
            "the tenant's account of memory has no slot 256");
}

TEST(TenantMemoryShare, that_cannot_join_another_account_stays_in_its_own) {
  const UniqueFd memfd = Memfd(sizeof(TenantMemoryTable), kSealed);
  const uint32_t version = TenantMemoryTable::kVersion;
  const uint64_t limit = 70;
  ASSERT_EQ(pwrite(memfd.get(), &version, sizeof version, offsetof(TenantMemoryTable, version)), 4);
  ASSERT_EQ(pwrite(memfd.get(), &limit, sizeof limit, offsetof(TenantMemoryTable, limit)), 8);
  TenantMemoryShare share;
  ASSERT_TRUE(share.Join(memfd.get(), 3));
  EXPECT_FALSE(share.Join(memfd.get(), kMaxMemoryProcesses));
  EXPECT_EQ(share.limit(), 70u);
}

TEST(TenantMemoryShare, of_a_process_whose_server_comes_and_goes_takes_a_limited_number_of_addresses) {
  const UniqueFd memfd = Memfd(sizeof(TenantMemoryTable), kSealed);
  const uint32_t version = TenantMemoryTable::kVersion;
  ASSERT_EQ(pwrite(memfd.get(), &version, sizeof version, offsetof(TenantMemoryTable, version)), 4);
  TenantMemoryShare share;
  for (int i = 0; i < TenantMemoryShare::kMostJoins; ++i) {
    ASSERT_TRUE(share.Join(memfd.get(), 3));
    share.Leave();
  }
  EXPECT_STREQ(share.Join(memfd.get(), 3).error().text(),
               "the tenant's account of memory has changed too often");
}

TEST(TenantMemoryTable, has_no_limit_for_more_devices_than_it_has_room_for) {
  TenantMemoryTable table{};
  for (int i = 0; i < kMaxMemoryDevices; ++i) EXPECT_EQ(table.Device(static_cast<XDevice>(i) + 1), i);
  EXPECT_EQ(table.Device(5), 4);
  EXPECT_EQ(table.Device(1000), -1);
}

}  // namespace
}  // namespace xsched::ipc
