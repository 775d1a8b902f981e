// The lines of top about devices.
#include "cli/top/devices.h"

#include <gmock/gmock.h>

#include "base/pci_address.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kFirst = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0x3b, 0, 0));
constexpr uint64_t kSecond = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0xc1, 0, 0));

QueueRates QueueOn(uint64_t device, double share, XPlatform platform = kPlatformCUDA) {
  QueueRates entry{};
  entry.queue.device = device;
  entry.queue.platform = platform;
  ipc::SetText(entry.queue.device_name, std::string_view("NVIDIA H200"));
  entry.device_share = share;
  return entry;
}

AccountRates AccountOn(uint64_t device, double share) {
  AccountRates entry{};
  entry.account.device = device;
  ipc::SetText(entry.account.device_name, std::string_view("NVIDIA H200"));
  entry.device_share = share;
  return entry;
}

// With an account of the user for each queue.
std::vector<AccountRates> AccountsFor(const std::vector<QueueRates>& queues) {
  std::vector<AccountRates> accounts;
  for (const QueueRates& entry : queues)
    accounts.push_back(AccountOn(entry.queue.device, entry.device_share));
  return accounts;
}

std::vector<std::string> LinesOf(const std::vector<QueueRates>& queues, int width = 60) {
  Devices devices(30);
  devices.Take(queues, AccountsFor(queues));
  return devices.Lines({.width = width});
}

TEST(TopDevices, with_the_same_name_have_a_line_each_and_their_addresses) {
  EXPECT_THAT(LinesOf({QueueOn(kSecond, 0.9), QueueOn(kFirst, 0.5), QueueOn(kFirst, 0.25)}, /*width=*/120),
              ElementsAre(AllOf(StartsWith("0000:3b:00.0 NVIDIA H200 (C"), HasSubstr(" 75% ")),
                          AllOf(StartsWith("0000:c1:00.0 NVIDIA H200 (C"), HasSubstr(" 90% "))));
  EXPECT_THAT(LinesOf({QueueOn(kFirst, 0.1), QueueOn(PartOfDevice(kFirst, 2), 0.2)}),
              ElementsAre(StartsWith("0000:3b:00.0 NVIDI"), StartsWith("0000:3b:00.0/2 NVI")));
}

TEST(TopDevices, without_a_namesake_need_no_address) {
  EXPECT_THAT(LinesOf({QueueOn(kFirst, 0.5)}), ElementsAre(StartsWith("NVIDIA H200 (CUDA) ")));
}

TEST(TopDevices, that_two_platforms_use_have_one_line) {
  EXPECT_THAT(LinesOf({QueueOn(kFirst, 0.5), QueueOn(kFirst, 0.25, kPlatformOpenCL)}, /*width=*/120),
              ElementsAre(AllOf(StartsWith("NVIDIA H200 (CUDA, OpenCL) "), HasSubstr(" 75% "))));
}

TEST(TopDevices, keep_their_lines_when_their_queues_have_gone) {
  Devices devices(30);
  devices.Take({QueueOn(kFirst, 0.5)}, {});
  devices.Take({}, {});
  EXPECT_THAT(devices.Lines({.width = 120}), ElementsAre(HasSubstr("  0% ")));
}

TEST(TopDevices, have_the_time_of_queues_that_are_gone_and_nothing_twice) {
  AccountRates of_process = AccountOn(kFirst, 0.5);
  of_process.account.client_id = 3;
  Devices devices(30);
  devices.Take({}, {AccountOn(kFirst, 0.5), of_process, AccountOn(kSecond, 0)});
  EXPECT_THAT(devices.Lines({.width = 120}),
              ElementsAre(AllOf(StartsWith("NVIDIA H200 "), HasSubstr(" 50% "))))
      << "the other one has had nothing lately";
}

}  // namespace
}  // namespace xsched::cli
