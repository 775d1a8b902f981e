#include "server/device_access.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/device_file.h"
#include "base/fd.h"
#include "base/testing/forbid_waiting.h"
#include "ipc/hints.h"
#include "ipc/testing/packet_of.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

namespace fs = std::filesystem;

constexpr XDevice kGpu = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0x3b, 0, 0));
constexpr XDevice kOtherGpu = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0x5e, 0, 0));
constexpr unsigned kDrm = 226;
constexpr unsigned kNvidia = 195;

// A machine with two GPUs.
class DeviceAccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* address : {"0000:3b:00.0", "0000:5e:00.0"}) {
      const fs::path device = sys() / "devices/pci0000:3a" / address;
      fs::create_directories(device);
      std::ofstream(device / "vendor") << "0x10de\n";
      fs::create_directories(sys() / "bus/pci/devices");
      fs::create_directory_symlink(device, sys() / "bus/pci/devices" / address);
    }
  }
  fs::path sys() const { return fs::path(folder_.path()) / "sys"; }
  fs::path nvidia() const { return fs::path(folder_.path()) / "gpus"; }
  // Of DRM, whose files say in /sys of which device they are.
  dev_t DrmFile(unsigned number, const char* address) const {
    const fs::path file = sys() / "devices/pci0000:3a" / address / "drm" / std::to_string(number);
    fs::create_directories(file);
    fs::create_directories(sys() / "dev/char");
    fs::create_directory_symlink(file, sys() / "dev/char" / ("226:" + std::to_string(number)));
    return makedev(kDrm, number);
  }
  // Of a part of a GPU: it has no PCI address there.
  dev_t PartsFile(unsigned number) const {
    const fs::path file = sys() / "devices/platform" / ("amdgpu_xcp_" + std::to_string(number)) / "drm";
    fs::create_directories(file);
    fs::create_directories(sys() / "dev/char");
    fs::create_directory_symlink(file, sys() / "dev/char" / ("226:" + std::to_string(number)));
    return makedev(kDrm, number);
  }
  void KfdSays(unsigned node, unsigned location, unsigned number) const {
    const fs::path folder = sys() / "class/kfd/kfd/topology/nodes" / std::to_string(node);
    fs::create_directories(folder);
    std::ofstream(folder / "properties") << "cpu_cores_count 0\nsimd_count 304\nlocation_id " << location
                                         << "\ndomain 0\ndrm_render_minor " << number << "\n";
  }
  void NvidiaSays(const char* address, unsigned number) const {
    fs::create_directories(nvidia() / address);
    std::ofstream(nvidia() / address / "information")
        << "Model: \t\t NVIDIA H200\nDevice Minor: \t " << number << "\n";
  }
  bool MayUse(const std::vector<dev_t>& files, XDevice device, bool needed = true) const {
    DeviceAccess access(needed, {sys(), nvidia()});
    ShownDevices shown;
    for (const dev_t file : files) access.Show(file, shown);
    return access.MayUse(shown, device);
  }

  TempFolder folder_;
};

TEST_F(DeviceAccessTest, a_process_that_shows_nothing_may_not_use_a_gpu) { EXPECT_FALSE(MayUse({}, kGpu)); }

TEST_F(DeviceAccessTest, the_file_of_a_gpu_shows_that_gpu_and_no_other) {
  const dev_t file = DrmFile(128, "0000:3b:00.0");
  EXPECT_TRUE(MayUse({makedev(1, 3), file}, kGpu));
  EXPECT_FALSE(MayUse({file}, kOtherGpu));
  EXPECT_TRUE(MayUse({file}, PartOfDevice(kGpu, 5))) << "a part of it (MIG)";
}

TEST_F(DeviceAccessTest, the_file_of_a_part_of_a_gpu_shows_the_gpu_that_the_driver_says) {
  KfdSays(0, 0, 0);  // a processor
  KfdSays(1, 0x5e00, 128);
  KfdSays(2, 0x3b00 | 1u << 28, 130);
  KfdSays(3, 0x3b02, 131);
  const dev_t file = PartsFile(130);
  EXPECT_TRUE(MayUse({file}, kGpu));
  EXPECT_FALSE(MayUse({file}, kOtherGpu));
  EXPECT_TRUE(MayUse({PartsFile(131)}, kGpu)) << "its number is in the place of the function";
  EXPECT_FALSE(MayUse({PartsFile(132)}, kGpu)) << "the driver does not list it";
  EXPECT_FALSE(MayUse({PartsFile(0)}, kGpu));
}

TEST_F(DeviceAccessTest, the_file_of_a_part_of_amds_gpu_shows_no_other_part) {
  std::ofstream(sys() / "bus/pci/devices/0000:3b:00.0/vendor") << "0x1002\n";
  KfdSays(1, 0x3b02, 130);
  KfdSays(2, 0x3b03, 131);
  const dev_t file = PartsFile(130);
  const dev_t other = PartsFile(131);
  const dev_t whole = DrmFile(128, "0000:3b:00.0");
  EXPECT_TRUE(MayUse({file}, PartOfDevice(kGpu, 2)));
  EXPECT_FALSE(MayUse({file}, PartOfDevice(kGpu, 3)));
  EXPECT_TRUE(MayUse({file, other}, PartOfDevice(kGpu, 3)));
  EXPECT_FALSE(MayUse({whole}, PartOfDevice(kGpu, 2))) << "it is the file of the first part";
  EXPECT_FALSE(MayUse({}, PartOfDevice(kGpu, 2)));
  EXPECT_TRUE(MayUse({file}, kGpu)) << "which an older runtime says";
}

TEST_F(DeviceAccessTest, a_file_that_has_a_pci_address_shows_no_other_function_of_the_device) {
  KfdSays(1, 0x3b01, 129);
  const dev_t file = DrmFile(129, "0000:3b:00.1");
  EXPECT_FALSE(MayUse({file}, kGpu)) << "which may be a virtual function";
}

TEST_F(DeviceAccessTest, a_file_of_nvidias_driver_shows_the_gpu_that_the_driver_says) {
  NvidiaSays("0000:3b:00.0", 1);
  NvidiaSays("0000:5e:00.0", 0);
  EXPECT_TRUE(MayUse({makedev(kNvidia, 1)}, kGpu));
  EXPECT_FALSE(MayUse({makedev(kNvidia, 0)}, kGpu));
  EXPECT_FALSE(MayUse({makedev(kNvidia, 255)}, kGpu)) << "the file of all GPUs, which everybody may have";
}

TEST_F(DeviceAccessTest, where_the_driver_cannot_be_seen_its_files_show_its_gpus) {
  EXPECT_TRUE(MayUse({makedev(kNvidia, 0)}, kGpu));
  EXPECT_FALSE(MayUse({makedev(kNvidia, 255)}, kGpu));
  std::ofstream(sys() / "bus/pci/devices/0000:3b:00.0/vendor") << "0x1002\n";
  EXPECT_FALSE(MayUse({makedev(kNvidia, 0)}, kGpu));
}

TEST_F(DeviceAccessTest, what_everybody_can_use_needs_no_file) {
  EXPECT_TRUE(MayUse({}, MakeDevice(kDeviceTypeCPU, 0x3b00)));
  EXPECT_TRUE(MayUse({}, MakeDevice(kDeviceTypeGPU, 0x80001234u))) << "it has no PCI address";
  EXPECT_TRUE(MayUse({}, MakeDevice(kDeviceTypeGPU, PciAddress(0, 9, 0, 0)))) << "not of this machine";
}

TEST_F(DeviceAccessTest, where_one_user_is_served_nothing_needs_a_file) {
  EXPECT_TRUE(MayUse({}, kGpu, /*needed=*/false));
}

TEST_F(DeviceAccessTest, only_an_open_character_device_is_a_devices_file) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd path_only(open("/dev/null", O_PATH | O_CLOEXEC));
  const UniqueFd folder(open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(DeviceFileOf(null.get()), makedev(1, 3));
  EXPECT_EQ(DeviceFileOf(path_only.get()), std::nullopt) << "which needs no permission";
  EXPECT_EQ(DeviceFileOf(folder.get()), std::nullopt);
  EXPECT_EQ(DeviceFileOf(-1), std::nullopt);
}

TEST_F(DeviceAccessTest, a_file_whose_file_system_does_not_answer_is_looked_at_without_waiting) {
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const pid_t child = fork();
  if (child == 0) {
    if (!xsched::testing::ForbidWaitingFor(null.get())) _exit(2);
    struct stat status {};
    if (fstat(null.get(), &status) == 0) _exit(3);
    _exit(DeviceFileOf(null.get()) == makedev(1, 3) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "an emulator, without seccomp";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(DeviceAccessTest, a_file_is_looked_up_once_and_a_check_costs_the_same_however_many_are_shown) {
  DeviceAccess access(true, {sys(), nvidia()});
  const auto check_costs = [&](const ShownDevices& shown) {
    const uint64_t before = access.look_ups();
    EXPECT_FALSE(access.MayUse(shown, kGpu));
    return access.look_ups() - before;
  };
  ShownDevices shown;
  ASSERT_TRUE(access.Show(makedev(136, 0), shown));
  const uint64_t with_one = check_costs(shown);
  for (unsigned terminal = 1; terminal < kMaxDeviceFiles; ++terminal)
    ASSERT_TRUE(access.Show(makedev(136, terminal), shown));
  EXPECT_EQ(check_costs(shown), with_one);
  const uint64_t before = access.look_ups();
  EXPECT_FALSE(access.Show(makedev(136, 0), shown)) << "it is shown already";
  EXPECT_FALSE(access.Show(makedev(136, kMaxDeviceFiles), shown)) << "one too many";
  EXPECT_EQ(access.look_ups(), before);
}

// Found by a fuzzer: a client may send any number.
TEST(DeviceNumber, a_type_that_does_not_exist_is_unknown) {
  EXPECT_EQ(TypeOfDevice(MakeDevice(kDeviceTypeMCA, 1)), kDeviceTypeMCA);
  EXPECT_EQ(TypeOfDevice(XDevice{kDeviceTypeMCA + 1} << 32), kDeviceTypeUnknown);
  EXPECT_EQ(TypeOfDevice(~XDevice{0}), kDeviceTypeUnknown);
}

// The GPU's file is here /dev/null, which a test can open.
class ClaimsOnDevices : public ServerParts {
 protected:
  ClaimsOnDevices() {
    const fs::path device = fs::path(machine_.path()) / "devices" / "0000:3b:00.0";
    fs::create_directories(device / "null");
    for (const char* folder : {"bus/pci/devices", "dev/char"})
      fs::create_directories(fs::path(machine_.path()) / folder);
    fs::create_directory_symlink(device, fs::path(machine_.path()) / "bus/pci/devices/0000:3b:00.0");
    fs::create_directory_symlink(device / "null", fs::path(machine_.path()) / "dev/char/1:3");
  }
  void Show(const Client& client, const char* path, int flags) {
    ipc::Packet packet = ipc::PacketOf(ipc::DeviceFiles{});
    packet.fds[0].Reset(open(path, flags | O_CLOEXEC));
    packet.fd_count = 1;
    ASSERT_TRUE(agents_.HandleMessage(AgentOf(client), packet, now_));
  }
  void ShowGpu(const Client& client) { Show(client, "/dev/null", O_RDWR); }
  bool CreateQueueOnGpu(const Client& client, int32_t priority) {
    return CreateQueue(client, 0, priority, /*time_slices=*/false, kGpu);
  }
  void BothWork() {
    Submit(stranger_, 0);
    Submit(user_, 0);
    agents_.Decide(now_);
  }

  Client user_ = ConnectAgent({100, 1000, {}});
  Client stranger_ = ConnectAgent({200, 1001, {}});
};

TEST_F(ClaimsOnDevices, who_cannot_use_the_device_holds_nobody_and_is_not_held) {
  ShowGpu(user_);
  ASSERT_TRUE(CreateQueueOnGpu(user_, 0) && CreateQueueOnGpu(stranger_, 255));
  BothWork();
  EXPECT_FALSE(user_.IsHeld(0));
  EXPECT_FALSE(stranger_.IsHeld(0));
  const auto reply = stranger_.ReceiveA<ipc::Reply>();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->result, kXSchedErrorNotAllowed);
  EXPECT_NE(std::string(reply->text).find("has not shown that it can use"), std::string::npos) << reply->text;
  EXPECT_EQ(user_.ReadAll<ipc::Reply>(), 0);
  ASSERT_TRUE(CreateQueue(stranger_, 1, 255, /*time_slices=*/false, kGpu));
  EXPECT_EQ(stranger_.ReadAll<ipc::Reply>(), 0) << "one message is enough";
}

TEST_F(ClaimsOnDevices, a_queue_counts_as_soon_as_its_process_shows_the_devices_file) {
  ShowGpu(user_);
  ASSERT_TRUE(CreateQueueOnGpu(user_, 0) && CreateQueueOnGpu(stranger_, 255));
  BothWork();
  ShowGpu(stranger_);
  agents_.Decide(now_);
  EXPECT_TRUE(user_.IsHeld(0));
}

TEST_F(ClaimsOnDevices, what_is_guaranteed_to_who_cannot_use_the_device_is_left_for_others) {
  ShowGpu(user_);
  ASSERT_TRUE(CreateQueueOnGpu(user_, 0) && CreateQueueOnGpu(stranger_, 0));
  stranger_.ReadAll<ipc::Reply>();
  sched::Hints reservation;
  reservation.guarantee_us = 80'000;
  reservation.period_us = 100'000;
  ipc::QueueHints hints{};
  ipc::SetHintsIn(hints, reservation);
  const auto guarantee_of = [&](const Client& client) {
    EXPECT_TRUE(agents_.HandleMessage(AgentOf(client), ipc::PacketOf(hints), now_));
    return AgentOf(client).queues.at(0).hints.guarantee_us;
  };
  EXPECT_EQ(guarantee_of(stranger_), 80'000);
  EXPECT_EQ(guarantee_of(user_), 80'000);
  EXPECT_EQ(user_.ReadAll<ipc::Reply>(), 0);
  ShowGpu(stranger_);
  EXPECT_EQ(AgentOf(stranger_).queues.at(0).hints.guarantee_us, 0) << "it comes too late";
  EXPECT_EQ(stranger_.ReadAll<ipc::Reply>(), 1);
}

TEST_F(ClaimsOnDevices, the_device_is_not_divided_with_who_cannot_use_it) {
  scheduler_.SetPolicy(*sched::FindPolicy(kPolicyUtilizationPartition));
  ShowGpu(user_);
  ASSERT_TRUE(CreateQueue(user_, 0, 0, /*time_slices=*/true, kGpu));
  ASSERT_TRUE(CreateQueue(stranger_, 0, 0, /*time_slices=*/true, kGpu));
  BothWork();
  EXPECT_EQ(user_.ReadAll<ipc::ProcessSlice>(), 0);
  EXPECT_EQ(stranger_.ReadAll<ipc::ProcessSlice>(), 0);
  ShowGpu(stranger_);
  agents_.Decide(now_);
  EXPECT_NE(user_.ReadAll<ipc::ProcessSlice>(), 0);
}

TEST_F(ClaimsOnDevices, who_cannot_use_the_device_takes_nothing_from_others_of_the_tenant) {
  const Client colleague = ConnectAgent({300, 1000, {}});
  TenantRights& rights = AgentOf(user_).tenant->rights;
  rights.max_priority = 0;
  rights.max_queues = 1;
  ASSERT_TRUE(CreateQueueOnGpu(colleague, 50));
  colleague.ReadAll<ipc::Reply>();
  ShowGpu(user_);
  ASSERT_TRUE(CreateQueueOnGpu(user_, 0));
  agents_.Decide(now_);
  ASSERT_TRUE(AgentOf(user_).refused.none());
  EXPECT_EQ(scheduler_.GetHints(AgentOf(user_).queues.at(0).id)->priority, 0);
  ShowGpu(colleague);
  EXPECT_TRUE(AgentOf(colleague).refused[0]) << "the tenant has its one queue";
  EXPECT_EQ(colleague.ReadAll<ipc::Reply>(), 1);
  EXPECT_EQ(queues_.size(), 1u);
}

TEST_F(ClaimsOnDevices, a_list_shows_a_queue_without_access_with_what_it_does) {
  ASSERT_TRUE(CreateQueueOnGpu(stranger_, 0));
  Submit(stranger_, 0);
  agents_.Decide(now_);
  const Client tool = ConnectTool({201, 1001, {}});
  ASSERT_TRUE(Ask(tool, ipc::List{}));
  const auto info = tool.ReceiveA<ipc::QueueInfo>();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->wait_reason, ipc::kWaitNoAccess);
  EXPECT_EQ(info->submitted, 1u);
}

TEST_F(ClaimsOnDevices, files_are_looked_up_once_for_all_queues_of_a_device_and_are_charged) {
  for (uint32_t index = 0; index < ipc::kMaxQueues; ++index)
    ASSERT_TRUE(CreateQueue(stranger_, index, 0, /*time_slices=*/false, kGpu));
  for (int round = 0; round < 10'000; ++round) work_.BeginRound();
  ASSERT_FALSE(work_.IsSpent(1001));
  const uint64_t before = device_access_.look_ups();
  Show(stranger_, "/dev/zero", O_RDWR);
  const uint64_t look_ups = device_access_.look_ups() - before;
  EXPECT_LE(look_ups, 3u);
  for (int shown = 0; shown < 64; ++shown) Show(stranger_, "/dev/zero", O_RDWR);
  EXPECT_EQ(device_access_.look_ups() - before, look_ups) << "it is known";
  Show(stranger_, "/dev/full", O_RDWR);
  EXPECT_TRUE(work_.IsSpent(1001)) << "twice 1024 queues were looked at";
}

TEST_F(ClaimsOnDevices, queues_are_charged_for_what_is_looked_up_when_they_are_made) {
  for (int round = 0; round < 10'000; ++round) work_.BeginRound();
  for (uint32_t index = 0; index < WorkBudget::kPerRound / WorkBudget::kLookedUp; ++index)
    ASSERT_TRUE(CreateQueue(stranger_, index, 0, /*time_slices=*/false, kGpu));
  EXPECT_TRUE(work_.IsSpent(1001));
}

TEST_F(ClaimsOnDevices, a_message_that_shows_no_file_breaks_the_protocol) {
  EXPECT_FALSE(agents_.HandleMessage(AgentOf(stranger_), ipc::PacketOf(ipc::DeviceFiles{}), now_));
}

TEST_F(ClaimsOnDevices, a_descriptor_for_which_no_permission_is_needed_shows_nothing) {
  ShowGpu(user_);
  Show(stranger_, "/dev/null", O_PATH);
  Show(stranger_, "/dev/zero", O_RDWR);
  ASSERT_TRUE(CreateQueueOnGpu(user_, 0) && CreateQueueOnGpu(stranger_, 255));
  BothWork();
  EXPECT_FALSE(user_.IsHeld(0));
}

}  // namespace
}  // namespace xsched::server::testing
