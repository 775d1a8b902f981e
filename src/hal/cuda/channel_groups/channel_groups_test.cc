#include "hal/cuda/channel_groups/channel_groups.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/pci_address.h"

namespace xsched::cuda {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint32_t kOk = 0;
constexpr uint32_t kNotPermitted = 0x1B;
constexpr uint32_t kNotSupported = 0x56;

// The layouts of the published headers, independent of the code under test.
struct Nvos00 {
  uint32_t client, parent, object, status;
};
struct Nvos21 {
  uint32_t client, parent, object, object_class;
  uint64_t params;
  uint32_t params_size, status;
};
struct Nvos64 {
  uint32_t client, parent, object, object_class;
  uint64_t params, rights;
  uint32_t params_size, flags, status, padding;
};
struct Nvos54 {
  uint32_t client, object, command, flags;
  uint64_t params;
  uint32_t params_size, status;
};
struct Nvos55 {
  uint32_t client, parent, object, source_client, source, flags, status;
};
struct Transfer {
  uint32_t escape, size;
  uint64_t request;
};

constexpr unsigned long Escape(unsigned nr, size_t size) {
  return _IOC(_IOC_READ | _IOC_WRITE, 'F', nr, size);
}
uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

int NewFile() {
  int fd = memfd_create("control device", MFD_CLOEXEC);
  EXPECT_GE(fd, 0);
  return fd;
}

std::set<int> OpenDescriptors() {
  std::set<int> open;
  for (int fd = 0; fd < 5000; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) open.insert(fd);
  }
  return open;
}

// The resource manager's side of control calls: records them, keeps timeslices, and answers as a test wants.
struct FakeDevice {
  struct Call {
    uint32_t client;
    uint32_t object;
    uint32_t command;
    std::vector<uint8_t> params;
    ino_t file;

    bool operator==(const Call&) const = default;
  };

  std::vector<Call> calls;
  std::vector<int> descriptors;  // of these calls
  std::map<uint32_t, uint64_t> timeslices;
  std::map<uint32_t, uint32_t> status_of;  // by command
  std::map<uint32_t, int> errno_of;
  std::map<uint32_t, uint32_t> gpu_of;  // subdevice → GPU id, which here is bus << 8
  uint64_t holds_at_most = UINT64_MAX;

  static FakeDevice* current;

  static int Ioctl(int fd, unsigned long request, void* arg) {
    EXPECT_EQ(request, Escape(0x2A, sizeof(Nvos54)));
    return current->Answer(fd, *static_cast<Nvos54*>(arg));
  }

  int Answer(int fd, Nvos54& request) {
    struct stat info {};
    EXPECT_EQ(fstat(fd, &info), 0);
    auto* params = reinterpret_cast<uint8_t*>(request.params);
    calls.push_back({request.client, request.object, request.command,
                     std::vector<uint8_t>(params, params + request.params_size), info.st_ino});
    descriptors.push_back(fd);
    if (auto found = errno_of.find(request.command); found != errno_of.end()) {
      errno = found->second;
      return -1;
    }
    request.status = status_of.contains(request.command) ? status_of[request.command] : Do(request, params);
    return 0;
  }

  uint32_t Do(const Nvos54& request, uint8_t* params) {
    switch (request.command) {
      case 0xA06C0103: {
        uint64_t timeslice = 0;
        memcpy(&timeslice, params, 8);
        timeslices[request.object] = std::min(timeslice, holds_at_most);
        return kOk;
      }
      case 0xA06C0104:
        memcpy(params, &timeslices[request.object], 8);
        return kOk;
      case 0x20800142:
        memcpy(params, &gpu_of[request.object], 4);
        return kOk;
      case 0x21B: {
        uint32_t gpu = 0;
        memcpy(&gpu, params, 4);
        uint32_t domain = 1;
        const uint16_t bus_and_slot[2] = {static_cast<uint16_t>(gpu >> 8), 2};
        memcpy(params + 4, &domain, 4);
        memcpy(params + 8, bus_and_slot, 4);
        return kOk;
      }
      default:
        return kOk;
    }
  }

  std::vector<uint32_t> Commands() const {
    std::vector<uint32_t> commands;
    for (const Call& call : calls) commands.push_back(call.command);
    return commands;
  }
};
FakeDevice* FakeDevice::current = nullptr;

XDevice Gpu(uint32_t bus) { return MakeDevice(kDeviceTypeGPU, PciAddress(1, bus, 2, 0)); }

class ChannelGroupsTest : public testing::Test {
 protected:
  static constexpr uint32_t kClient = 0xC1D00001;
  static constexpr uint32_t kGroupClass = 0xA06C;

  ChannelGroupsTest() {
    FakeDevice::current = &device_;
    groups_.UseControlCall(&FakeDevice::Ioctl);
    std::string pattern = testing::TempDir() + "mpsXXXXXX";
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    mps_folder_ = pattern;
    setenv("CUDA_MPS_PIPE_DIRECTORY", mps_folder_.c_str(), 1);
  }
  ~ChannelGroupsTest() override {
    close(fd_);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    std::filesystem::remove_all(mps_folder_);
  }

  void Allocate(uint32_t parent, uint32_t object, uint32_t object_class, uint32_t client = kClient,
                const void* params = nullptr, uint32_t params_size = 0, uint32_t status = kOk) {
    Nvos21 request{client, parent, object, object_class, Address(params), params_size, status};
    groups_.Observe(fd_, Escape(0x2B, sizeof request), &request, 0);
  }
  void Free(uint32_t object, uint32_t client = kClient, uint32_t status = kOk) {
    Nvos00 request{client, 0, object, status};
    groups_.Observe(fd_, Escape(0x29, sizeof request), &request, 0);
  }
  void DriverControls(uint32_t object, uint32_t command, std::vector<uint8_t> params) {
    Nvos54 request{kClient, object, command, 0, Address(params.data()), uint32_t(params.size()), kOk};
    groups_.Observe(fd_, Escape(0x2A, sizeof request), &request, 0);
  }

  // A device on `bus`, with its subdevice: handles `device` and `device` + 1.
  void MakeGpu(uint32_t device, uint32_t bus, uint32_t instance = 0, uint32_t client = kClient) {
    uint32_t params[2] = {instance, 0};
    Allocate(client, device, 0x0080, client, params, sizeof params);
    Allocate(device, device + 1, 0x2080, client);
    device_.gpu_of[device + 1] = bus << 8;
  }
  // A context as the driver makes it: a compute group with two channels, and a copy group. Its handles begin
  // at `group`.
  void MakeContext(uint32_t device, uint32_t group, uint32_t client = kClient) {
    Allocate(device, group, kGroupClass, client);
    Allocate(group, group + 1, 0xC86F, client);
    Allocate(group + 1, group + 2, 0xCBC0, client);
    Allocate(group, group + 3, 0xC86F, client);
    Allocate(group + 3, group + 4, 0xCBC0, client);
    Allocate(device, group + 5, kGroupClass, client);
    Allocate(group + 5, group + 6, 0xC86F, client);
    Allocate(group + 6, group + 7, 0xC8B5, client);
  }

  std::vector<uint32_t> GroupsOn(XDevice device) {
    std::vector<uint32_t> handles;
    Result<Array<ChannelGroup>> found = groups_.OfDevice(device);
    EXPECT_TRUE(found) << found.error().text();
    if (found) {
      for (const ChannelGroup& group : *found) handles.push_back(group.handle);
    }
    return handles;
  }
  std::string WhyNot(XDevice device) {
    Result<> support = groups_.Level3Support(device);
    return support ? "" : support.error().text();
  }

  int fd_ = NewFile();
  std::string mps_folder_;
  FakeDevice device_;
  ChannelGroups groups_;
};

TEST_F(ChannelGroupsTest, nothing_is_there_before_cuda_starts) {
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
  EXPECT_THAT(WhyNot(Gpu(7)), HasSubstr("no channel group seen yet"));
  EXPECT_THAT(device_.calls, IsEmpty());
  EXPECT_EQ(groups_.changes(), 0u);
}

TEST_F(ChannelGroupsTest, a_group_with_a_compute_object_is_found_and_a_copy_group_is_not) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  EXPECT_EQ(WhyNot(Gpu(7)), "");
}

TEST_F(ChannelGroupsTest, a_group_belongs_to_the_gpu_above_it_by_its_pci_address) {
  MakeGpu(0x10, 7, 0);
  MakeGpu(0x20, 9, 1);
  MakeContext(0x20, 0x100);
  MakeContext(0x10, 0x200);
  EXPECT_THAT(GroupsOn(Gpu(9)), ElementsAre(0x100));
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x200));
  EXPECT_THAT(GroupsOn(Gpu(8)), IsEmpty());
  EXPECT_THAT(WhyNot(Gpu(8)), HasSubstr("no channel group seen yet"));
}

TEST_F(ChannelGroupsTest, a_gpu_is_asked_for_its_address_once) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  MakeContext(0x10, 0x200);
  GroupsOn(Gpu(7));
  GroupsOn(Gpu(7));
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100, 0x200));
  EXPECT_LE(device_.calls.size(), 4u);  // once per group that did not know it yet
  device_.calls.clear();
  GroupsOn(Gpu(7));
  EXPECT_THAT(device_.calls, IsEmpty());
}

TEST_F(ChannelGroupsTest, the_same_handles_of_another_client_are_other_objects) {
  constexpr uint32_t kOther = 0xC1D00002;
  MakeGpu(0x10, 7);
  MakeGpu(0x10, 7, 0, kOther);
  Allocate(0x10, 0x100, kGroupClass);
  Allocate(0x100, 0x101, 0xC86F, kOther);
  Allocate(0x101, 0x102, 0xCBC0, kOther);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, allocations_come_in_two_layouts) {
  MakeGpu(0x10, 7);
  auto allocate = [&](uint32_t parent, uint32_t object, uint32_t object_class, uint32_t status) {
    Nvos64 request{kClient, parent, object, object_class, 0, 0, 0, 0, status, 0};
    groups_.Observe(fd_, Escape(0x2B, sizeof request), &request, 0);
  };
  allocate(0x10, 0x100, kGroupClass, kOk);
  allocate(0x100, 0x101, 0xC86F, kOk);
  allocate(0x101, 0x102, 0xCBC0, kOk);
  allocate(0x10, 0x200, kGroupClass, kOk);
  allocate(0x200, 0x201, 0xC86F, kOk);
  allocate(0x201, 0x202, 0xCBC0, kNotPermitted);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
}

TEST_F(ChannelGroupsTest, wrapped_requests_count_as_the_requests_in_them) {
  MakeGpu(0x10, 7);
  auto wrapped = [&](uint32_t escape, const void* request, uint32_t size) {
    Transfer transfer{escape, size, Address(request)};
    groups_.Observe(fd_, Escape(211, sizeof transfer), &transfer, 0);
  };
  Nvos21 group{kClient, 0x10, 0x100, kGroupClass, 0, 0, kOk};
  Nvos64 channel{kClient, 0x100, 0x101, 0xC86F, 0, 0, 0, 0, kOk, 0};
  Nvos21 compute{kClient, 0x101, 0x102, 0xCBC0, 0, 0, kOk};
  wrapped(0x2B, &group, sizeof group);
  wrapped(0x2B, &channel, sizeof channel);
  wrapped(0x2B, &compute, sizeof compute);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  Nvos00 gone{kClient, 0x10, 0x100, kOk};
  wrapped(0x29, &gone, sizeof gone - 1);  // not the size of a free
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  wrapped(0x29, &gone, sizeof gone);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, a_request_that_failed_changes_nothing) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  Nvos00 gone{kClient, 0x10, 0x100, kOk};
  groups_.Observe(fd_, Escape(0x29, sizeof gone), &gone, -1);
  Free(0x100, kClient, kNotPermitted);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
}

TEST_F(ChannelGroupsTest, what_is_freed_takes_all_below_it_along) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  Free(0x100);
  Allocate(0x10, 0x100, kGroupClass);  // the handle again, now without channels
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
  Allocate(0x100, 0x101, 0xC86F);  // and without a compute object
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());

  MakeContext(0x10, 0x200);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x200));
  Free(0x10);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, a_handle_that_comes_again_is_a_new_object) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  Allocate(0x10, 0x100, kGroupClass);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, a_freed_client_takes_everything_and_its_open_file) {
  const std::set<int> before = OpenDescriptors();
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  EXPECT_EQ(OpenDescriptors().size(), before.size() + 1);
  Free(kClient);
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, the_lowest_number_of_a_descriptor_is_the_programs) {
  const int lowest = NewFile();
  close(lowest);
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  EXPECT_LT(fcntl(lowest, F_GETFD), 0);
  EXPECT_TRUE(groups_.GetTimeslice({kClient, 0x100}));
  EXPECT_THAT(device_.descriptors, Not(IsEmpty()));
  for (const int fd : device_.descriptors) EXPECT_GT(fd, 256);
}

TEST_F(ChannelGroupsTest, a_client_that_comes_again_starts_empty) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  Nvos21 root{0, 0, kClient, 0x41, 0, 0, kOk};
  groups_.Observe(fd_, Escape(0x2B, sizeof root), &root, 0);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
}

TEST_F(ChannelGroupsTest, a_shared_object_is_what_its_source_is) {
  constexpr uint32_t kOther = 0xC1D00002;
  MakeGpu(0x10, 7);
  MakeGpu(0x20, 7, 0, kOther);
  Allocate(0x10, 0x100, kGroupClass);
  Allocate(0x100, 0x101, 0xC86F);
  Allocate(0x20, 0x200, kGroupClass, kOther);
  Nvos55 channel{kOther, 0x200, 0x201, kClient, 0x101, 0, kOk};
  groups_.Observe(fd_, Escape(0x34, sizeof channel), &channel, 0);
  Nvos55 refused{kOther, 0x200, 0x202, kClient, 0x101, 0, kNotPermitted};
  groups_.Observe(fd_, Escape(0x34, sizeof refused), &refused, 0);
  Nvos55 unknown{kOther, 0x200, 0x203, kClient, 0x999, 0, kOk};
  groups_.Observe(fd_, Escape(0x34, sizeof unknown), &unknown, 0);
  EXPECT_THAT(GroupsOn(Gpu(7)), IsEmpty());
  Allocate(0x201, 0x204, 0xCBC0, kOther);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x200));
}

TEST_F(ChannelGroupsTest, an_instance_of_a_divided_gpu_has_the_groups_on_that_gpu) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  EXPECT_THAT(GroupsOn(PartOfDevice(Gpu(7), 0x123456)), ElementsAre(0x100));
}

TEST_F(ChannelGroupsTest, control_calls_go_to_the_open_file_that_made_the_client) {
  struct stat made {};
  ASSERT_EQ(fstat(fd_, &made), 0);
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  close(fd_);
  fd_ = NewFile();
  ASSERT_EQ(groups_.OfDevice(Gpu(7))->size(), 1u);
  ASSERT_TRUE(groups_.SetTimeslice({kClient, 0x100}, microseconds(5)));
  for (const FakeDevice::Call& call : device_.calls) EXPECT_EQ(call.file, made.st_ino);
}

TEST_F(ChannelGroupsTest, a_process_that_may_open_no_file_any_more_gets_back_what_was_taken) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  const ChannelGroup group{kClient, 0x100};
  ASSERT_TRUE(groups_.SetRunning(group, false));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool given_back = static_cast<bool>(groups_.SetRunning(group, true));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(given_back);
}

TEST_F(ChannelGroupsTest, the_calls_are_exactly_these) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  Result<Array<ChannelGroup>> found = groups_.OfDevice(Gpu(7));
  ASSERT_TRUE(found);
  ChannelGroup group = (*found)[0];
  ASSERT_TRUE(groups_.SetTimeslice(group, microseconds(1)));
  ASSERT_TRUE(groups_.SetRunning(group, false));
  ASSERT_TRUE(groups_.SetRunning(group, true));
  struct stat file {};
  ASSERT_EQ(fstat(fd_, &file), 0);
  using Bytes = std::vector<uint8_t>;
  const Bytes gpu_id = {0, 0, 0, 0};
  const Bytes pci = {0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const Bytes one = {1, 0, 0, 0, 0, 0, 0, 0};
  // Disable or enable, the number of channels (2), and at offsets 24 and 280 their clients and handles.
  Bytes channels(536);
  channels[4] = 2;
  for (size_t i = 0; i < 2; ++i) {
    const uint32_t handle = i == 0 ? 0x101 : 0x103;
    memcpy(&channels[24 + 4 * i], &kClient, 4);
    memcpy(&channels[280 + 4 * i], &handle, 4);
  }
  Bytes disable = channels;
  disable[0] = 1;
  EXPECT_THAT(device_.calls,
              ElementsAre(FakeDevice::Call{kClient, 0x11, 0x20800142, gpu_id, file.st_ino},
                          FakeDevice::Call{kClient, kClient, 0x21B, pci, file.st_ino},
                          FakeDevice::Call{kClient, 0x100, 0xA06C0103, one, file.st_ino},
                          FakeDevice::Call{kClient, 0x100, 0xA06C0104, Bytes(8, 0), file.st_ino},
                          FakeDevice::Call{kClient, 0x11, 0x2080110B, disable, file.st_ino},
                          FakeDevice::Call{kClient, 0x11, 0x2080110B, channels, file.st_ino}));
}

TEST_F(ChannelGroupsTest, a_group_with_more_channels_than_a_request_takes_is_stopped_in_several) {
  MakeGpu(0x10, 7);
  Allocate(0x10, 0x1000, kGroupClass);
  for (uint32_t i = 1; i <= 130; ++i) Allocate(0x1000, 0x1000 + i, 0xC86F);
  ASSERT_TRUE(groups_.SetRunning({kClient, 0x1000}, false));
  std::set<uint32_t> stopped;
  for (const FakeDevice::Call& call : device_.calls) {
    uint32_t count = 0;
    memcpy(&count, &call.params[4], 4);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t channel = 0;
      memcpy(&channel, &call.params[280 + 4 * size_t{i}], 4);
      EXPECT_TRUE(stopped.insert(channel).second);
    }
  }
  EXPECT_EQ(device_.calls.size(), 3u);
  EXPECT_EQ(stopped.size(), 130u);
}

TEST_F(ChannelGroupsTest, a_group_that_is_not_known_or_has_no_channels_cannot_be_stopped) {
  MakeGpu(0x10, 7);
  EXPECT_THAT(groups_.SetRunning({kClient, 0x100}, false).error().text(), HasSubstr("is not known"));
  Allocate(0x10, 0x100, kGroupClass);
  EXPECT_THAT(groups_.SetRunning({kClient, 0x100}, false).error().text(), HasSubstr("has none"));
  EXPECT_THAT(device_.calls, IsEmpty());
}

TEST_F(ChannelGroupsTest, a_timeslice_that_does_not_hold_is_an_error) {
  MakeGpu(0x10, 7);
  device_.holds_at_most = 2048;
  EXPECT_TRUE(groups_.SetTimeslice({kClient, 0x100}, microseconds(2048)));
  Result<> set = groups_.SetTimeslice({kClient, 0x100}, microseconds(100000));
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().text(), HasSubstr("100000 us were accepted, but it reads back as 2048 us"));
}

TEST_F(ChannelGroupsTest, a_refusal_says_what_was_refused_and_why) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  ChannelGroup group{kClient, 0x100};
  device_.status_of = {{0xA06C0103, kNotPermitted}, {0x2080110B, kNotSupported}};
  device_.errno_of = {{0xA06C0104, EPERM}};
  EXPECT_STREQ(groups_.SetTimeslice(group, microseconds(1)).error().text(),
               "setting the timeslice: the resource manager answered 0x1b: not permitted to this process");
  EXPECT_STREQ(
      groups_.SetRunning(group, false).error().text(),
      "disabling the channels: the resource manager answered 0x56: not supported by this driver or GPU");
  device_.status_of[0x2080110B] = 0x7777;
  EXPECT_THAT(groups_.SetRunning(group, true).error().text(),
              HasSubstr("enabling the channels: the resource manager answered 0x7777"));
  Result<microseconds> timeslice = groups_.GetTimeslice(group);
  EXPECT_EQ(timeslice.error().errnum(), EPERM);
  EXPECT_STREQ(
      timeslice.error().text(),
      "reading the timeslice: the resource manager's device refused the call: Operation not permitted");
  EXPECT_THAT(device_.Commands(), ElementsAre(0xA06C0103, 0x2080110B, 0x2080110B, 0xA06C0104));
}

TEST_F(ChannelGroupsTest, level_3_is_missing_for_the_reason_that_the_resource_manager_gives) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  device_.status_of = {{0xA06C0104, kNotSupported}};
  EXPECT_THAT(WhyNot(Gpu(7)), HasSubstr("0x56: not supported"));
  device_.status_of.clear();
  device_.errno_of = {{0xA06C0104, ENOTTY}};
  EXPECT_THAT(WhyNot(Gpu(7)), HasSubstr("device refused the call"));
  device_.errno_of.clear();
  EXPECT_EQ(WhyNot(Gpu(7)), "");
}

TEST_F(ChannelGroupsTest, under_mps_level_3_is_refused) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  std::ofstream(mps_folder_ + "/control") << "";
  EXPECT_THAT(WhyNot(Gpu(7)), testing::AllOf(HasSubstr("MPS"), HasSubstr("/control")));
  EXPECT_THAT(device_.calls, IsEmpty());
}

TEST_F(ChannelGroupsTest, without_an_address_the_only_gpu_is_the_one_meant) {
  MakeGpu(0x10, 7, 3);
  MakeContext(0x10, 0x100);
  device_.status_of = {{0x21B, kNotSupported}};
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  MakeGpu(0x30, 7, 3);  // the same GPU once more
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  MakeGpu(0x20, 9, 4);
  Result<Array<ChannelGroup>> found = groups_.OfDevice(Gpu(7));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("PCI address"));
}

TEST_F(ChannelGroupsTest, a_gpu_whose_device_nobody_saw_is_not_guessed) {
  MakeContext(0x10, 0x100);
  Result<Array<ChannelGroup>> found = groups_.OfDevice(Gpu(7));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().text(), HasSubstr("before XSched could see it"));
}

TEST_F(ChannelGroupsTest, a_group_is_scheduled_once_the_driver_has_done_so) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  EXPECT_FALSE((*groups_.OfDevice(Gpu(7)))[0].scheduled);
  DriverControls(0x100, 0xA06C0101, {1, 0, 0});
  EXPECT_TRUE((*groups_.OfDevice(Gpu(7)))[0].scheduled);
  DriverControls(0x100, 0xA06C0101, {0, 0, 0});
  EXPECT_FALSE((*groups_.OfDevice(Gpu(7)))[0].scheduled);
  DriverControls(0x101, 0xA06F0103, {1, 0});  // by its channel
  EXPECT_TRUE((*groups_.OfDevice(Gpu(7)))[0].scheduled);
}

TEST_F(ChannelGroupsTest, whatever_may_undo_a_timeslice_counts_as_a_change) {
  MakeGpu(0x10, 7);
  EXPECT_EQ(groups_.changes(), 0u);
  uint64_t seen = 0;
  auto changed = [&] {
    bool grown = groups_.changes() > seen;
    seen = groups_.changes();
    return grown;
  };
  MakeContext(0x10, 0x100);
  EXPECT_TRUE(changed());
  DriverControls(0x100, 0xA06C0101, {1, 0, 0});
  EXPECT_TRUE(changed());
  DriverControls(0x100, 0xA06C0103, {0, 8, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(changed());
  Allocate(0x10, 0x900, 0x003E);  // memory
  Free(0x900);
  DriverControls(0x100, 0xA06C0104, {0, 8, 0, 0, 0, 0, 0, 0});
  EXPECT_FALSE(changed());
  ASSERT_TRUE(groups_.SetTimeslice({kClient, 0x100}, microseconds(9)));  // our own
  EXPECT_FALSE(changed());
  Free(0x100);
  EXPECT_TRUE(changed());
}

TEST_F(ChannelGroupsTest, a_program_that_closes_descriptors_it_does_not_know_loses_level_3_and_nothing_else) {
  const std::set<int> before = OpenDescriptors();
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  int ours = -1;
  for (int fd : OpenDescriptors()) {
    if (!before.contains(fd)) ours = fd;
  }
  ASSERT_GE(ours, 0);
  int other = NewFile();
  ASSERT_EQ(dup2(other, ours), ours);  // closes it, and takes its number
  EXPECT_EQ(groups_.GetTimeslice({kClient, 0x100}).error().errnum(), EBADF);
  EXPECT_THAT(device_.calls, IsEmpty());
  Free(kClient);
  EXPECT_GE(fcntl(ours, F_GETFD), 0) << "the program's file was closed";
  close(ours);
  close(other);
}

TEST_F(ChannelGroupsTest, observing_keeps_errno) {
  errno = ERANGE;
  Nvos21 request{kClient, kClient, 0x10, 0x0080, 0, 0, kOk};
  groups_.Observe(-1, Escape(0x2B, sizeof request), &request, 0);  // no such file to duplicate
  EXPECT_EQ(errno, ERANGE);
  device_.errno_of = {{0xA06C0104, EPERM}};
  MakeGpu(0x20, 7);
  EXPECT_FALSE(groups_.GetTimeslice({kClient, 0x100}));
  EXPECT_EQ(errno, ERANGE);
}

TEST_F(ChannelGroupsTest, the_table_is_bounded) {
  MakeGpu(0x10, 7);
  for (uint32_t i = 0; i < 2 * ObjectTable::kMaxObjects; ++i) Allocate(0x10, 0x1000 + i, 0xCBC0);
  MakeContext(0x10, 0x100);
  EXPECT_THAT(WhyNot(Gpu(7)), HasSubstr("too many objects"));
  const size_t open = OpenDescriptors().size();
  for (uint32_t i = 0; i < 400; ++i) Allocate(i, 0x10, 0x0080, 0x5000 + i);
  EXPECT_LE(OpenDescriptors().size(), open + ObjectTable::kMaxClients);
}

TEST_F(ChannelGroupsTest, freed_objects_make_room) {
  MakeGpu(0x10, 7);
  for (uint32_t i = 0; i < ObjectTable::kMaxObjects; ++i) {
    const uint32_t group = 0x1000 + 8 * i;
    MakeContext(0x10, group);
    Free(group);  // and with it the compute objects two levels below
    Free(group + 5);
  }
  MakeContext(0x10, 0x100);
  EXPECT_EQ(WhyNot(Gpu(7)), "");
}

TEST_F(ChannelGroupsTest, a_forked_child_forgets_the_groups_and_closes_their_files) {
  const std::set<int> before = OpenDescriptors();
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  groups_.BeforeFork();
  Allocate(0x10, 0x300, kGroupClass);  // in a fork handler of another library
  pid_t child = fork();
  if (child == 0) {
    groups_.AfterForkInChild();
    bool closed = OpenDescriptors() == before;
    bool forgotten = groups_.OfDevice(Gpu(7))->empty();
    MakeGpu(0x20, 7);
    MakeContext(0x20, 0x200);
    bool works = groups_.OfDevice(Gpu(7))->size() == 1;
    _exit((closed ? 0 : 1) | (forgotten ? 0 : 2) | (works ? 0 : 4));
  }
  groups_.AfterForkInParent();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
}

TEST_F(ChannelGroupsTest, threads_may_allocate_free_and_ask_at_the_same_time) {
  MakeGpu(0x10, 7);
  MakeContext(0x10, 0x100);
  ASSERT_THAT(GroupsOn(Gpu(7)), ElementsAre(0x100));
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const uint32_t client = 0xC1D00010 + t;
      while (!stop) {
        Allocate(client, 0x10, 0x0080, client);
        Allocate(0x10, 0x100, 0xC86F, client);
        Free(client, client);
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(groups_.SetTimeslice({kClient, 0x100}, microseconds(i)));
    ASSERT_EQ(groups_.OfDevice(Gpu(7))->size(), 1u);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

// Memory in front of an unmapped page: a read beyond its end crashes.
class Edge {
 public:
  Edge() {
    page_ = static_cast<uint8_t*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(page_ + kPage, kPage, PROT_NONE), 0);
  }
  ~Edge() { munmap(page_, 2 * kPage); }
  uint8_t* Last(size_t size) { return page_ + kPage - size; }

 private:
  static constexpr size_t kPage = 4096;
  uint8_t* page_;
};

TEST_F(ChannelGroupsTest, any_request_is_read_within_its_size_only) {
  std::mt19937 random(20250101);
  auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  auto handle = [&] { return below(4) == 0 ? kClient : below(24); };
  constexpr uint32_t kClasses[] = {0x0080, 0x2080, 0xA06C, 0xC86F, 0xCBC0, 0x41, 0x3E};
  constexpr unsigned kEscapes[] = {0x29, 0x2A, 0x2B, 0x34, 211, 0x4E};
  constexpr size_t kSizes[] = {16, 28, 32, 48};
  Edge direct;
  Edge inner;
  Edge params;
  auto fill = [&](Edge& edge, size_t size) {
    uint8_t* bytes = edge.Last(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(below(4) ? 0 : random());
    for (size_t i = 0; i + 4 <= size && i < 16; i += 4) {
      uint32_t word = i == 12 && below(8) ? kClasses[below(std::size(kClasses))] : handle();
      memcpy(bytes + i, &word, 4);
    }
    // Pointers and their sizes are valid, as after the kernel has read them.
    size_t params_size = below(9);
    uint64_t pointer = below(4) ? Address(params.Last(params_size)) : 0;
    if (size == 32 || size == 48) {
      memcpy(bytes + 16, &pointer, 8);
      uint32_t told = static_cast<uint32_t>(params_size);
      memcpy(bytes + (size == 32 ? 24 : 32), &told, 4);
      if (size == 32 && below(2)) {
        constexpr uint32_t kCommands[] = {0xA06C0101, 0xA06C0103, 0xA06F0103};
        memcpy(bytes + 8, &kCommands[below(3)], 4);
      }
    }
    return bytes;
  };
  int seen = 0;
  for (int i = 0; i < 200000; ++i) {
    unsigned escape = below(16) ? kEscapes[below(std::size(kEscapes))] : below(256);
    size_t size = below(4) ? kSizes[below(std::size(kSizes))] : below(64);
    uint8_t* arg = fill(direct, size);
    if (escape == 211 && size == 16) {
      unsigned within = kEscapes[below(std::size(kEscapes))];
      size_t inner_size = below(4) ? kSizes[below(std::size(kSizes))] : below(64);
      Transfer transfer{within, static_cast<uint32_t>(inner_size), Address(fill(inner, inner_size))};
      memcpy(arg, &transfer, sizeof transfer);
    }
    unsigned long request = _IOC(below(4), below(8) ? 'F' : below(256), escape, size);
    uint64_t before = groups_.changes();
    groups_.Observe(fd_, request, below(50) ? arg : nullptr, static_cast<int>(below(8)) - 1);
    seen += groups_.changes() != before;
    if (i % 1000 == 0) {
      Result<Array<ChannelGroup>> groups = groups_.OfDevice(Gpu(0));
      (void)groups;
    }
  }
  EXPECT_GT(seen, 1000) << "the requests never got as far as the table";
}

TEST(ObserveIoctl, requests_to_other_devices_are_none_of_its_business) {
  const uint64_t before = OwnChannelGroups().changes();
  auto* nowhere = reinterpret_cast<void*>(uint64_t{16});
  ObserveIoctl(0, TIOCGWINSZ, nowhere, 0);
  ObserveIoctl(0, FIONREAD, nowhere, 0);
  ObserveIoctl(0, 0x30000001, nowhere, 0);  // the unified memory's device
  ObserveIoctl(0, _IOWR('G', 0x2B, Nvos21), nowhere, 0);
  EXPECT_EQ(OwnChannelGroups().changes(), before);
}

TEST(ObserveIoctl, the_processs_own_groups_survive_a_fork_in_the_parent_only) {
  FakeDevice device;
  FakeDevice::current = &device;
  OwnChannelGroups().UseControlCall(&FakeDevice::Ioctl);
  int fd = NewFile();
  const std::set<int> before = OpenDescriptors();
  auto observe = [&](uint32_t parent, uint32_t object, uint32_t object_class) {
    uint32_t instance[2] = {0, 0};
    Nvos21 request{1, parent, object, object_class, Address(instance), sizeof instance, kOk};
    ObserveIoctl(fd, Escape(0x2B, sizeof request), &request, 0);
  };
  observe(1, 0x10, 0x0080);
  observe(0x10, 0x11, 0x2080);
  observe(0x10, 0x100, 0xA06C);
  observe(0x100, 0x101, 0xC96F);
  observe(0x101, 0x102, 0xCDC0);
  device.gpu_of[0x11] = 3 << 8;
  ASSERT_EQ(OwnChannelGroups().OfDevice(Gpu(3))->size(), 1u);
  pid_t child = fork();
  if (child == 0) {
    _exit(OpenDescriptors() == before && OwnChannelGroups().OfDevice(Gpu(3))->empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(OwnChannelGroups().OfDevice(Gpu(3))->size(), 1u);
  Nvos00 gone{1, 0, 1, kOk};
  ObserveIoctl(fd, Escape(0x29, sizeof gone), &gone, 0);
  EXPECT_TRUE(OwnChannelGroups().OfDevice(Gpu(3))->empty());
  OwnChannelGroups().UseControlCall(&rm::SystemCall);
  close(fd);
}

TEST(ControlCall, a_file_that_is_no_control_device_refuses) {
  ChannelGroups groups;
  int fd = NewFile();
  Nvos21 request{1, 1, 0x10, 0x0080, 0, 0, kOk};
  groups.Observe(fd, Escape(0x2B, sizeof request), &request, 0);
  EXPECT_EQ(groups.GetTimeslice({1, 0x100}).error().errnum(), ENOTTY);
  close(fd);
}

}  // namespace
}  // namespace xsched::cuda
