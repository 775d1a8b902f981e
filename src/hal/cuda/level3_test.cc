// Level 3 when the resource manager refuses a request, or carries it out and reports a failure.
#include "hal/cuda/level3.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <vector>

#include "base/pci_address.h"
#include "hal/cuda/channel_groups/channel_groups.h"

namespace {

XProcessOps process_ops;

}  // namespace

// In place of libpreempt's.
void ProcessOpsRegister(const XProcessOps* ops) { process_ops = *ops; }

namespace xsched::cuda {
namespace {

constexpr uint32_t kSetTimeslice = 0xA06C0103;
constexpr uint32_t kGetTimeslice = 0xA06C0104;
constexpr uint32_t kDisableChannels = 0x2080110B;
constexpr uint32_t kTimedOut = 0x65;
constexpr uint32_t kGone = 0x57;
constexpr uint64_t kDrivers = 3000;

struct Alloc {
  uint32_t client, parent, object, object_class;
  uint64_t params;
  uint32_t params_size, status;
};
struct ControlCall {
  uint32_t client, object, command, flags;
  uint64_t params;
  uint32_t params_size, status;
};

// A GPU on bus 7 with the channel groups of one process.
struct FakeGpu {
  std::map<uint32_t, uint64_t> slices;  // by group
  bool running = true;
  uint64_t holds_at_most = UINT64_MAX;
  // The next calls of that command report the status. With `effect`, they take effect nevertheless.
  struct Fault {
    uint32_t status;
    int times;
    bool effect;
  };
  std::map<uint32_t, Fault> faults;
  std::map<uint32_t, int> calls;

  static FakeGpu* current;
  static int Ioctl(int, unsigned long, void* arg) {
    auto& call = *static_cast<ControlCall*>(arg);
    call.status = current->Answer(call);
    return 0;
  }
  uint32_t Answer(const ControlCall& call) {
    ++calls[call.command];
    auto fault = faults.find(call.command);
    if (fault == faults.end() || fault->second.times == 0) return Do(call), 0;
    --fault->second.times;
    if (fault->second.effect) Do(call);
    return fault->second.status;
  }
  void Do(const ControlCall& call) {
    auto* params = reinterpret_cast<uint8_t*>(call.params);
    switch (call.command) {
      case kSetTimeslice: {
        uint64_t wanted = 0;
        memcpy(&wanted, params, sizeof wanted);
        slices[call.object] = std::min(wanted, holds_at_most);
        break;
      }
      case kGetTimeslice:
        slices.try_emplace(call.object, kDrivers);
        memcpy(params, &slices[call.object], 8);
        break;
      case kDisableChannels:
        running = params[0] == 0;
        break;
      case 0x20800142: {
        const uint32_t id = 7 << 8;
        memcpy(params, &id, sizeof id);
        break;
      }
      case 0x21B: {
        const uint32_t domain = 1;
        const uint16_t bus_and_slot[] = {7, 2};
        memcpy(params + 4, &domain, 4);
        memcpy(params + 8, bus_and_slot, 4);
        break;
      }
      default:
        break;
    }
  }
};
FakeGpu* FakeGpu::current = nullptr;

class Level3Test : public testing::Test {
 protected:
  Level3Test() {
    FakeGpu::current = &gpu_;
    OwnChannelGroups().UseControlCall(&FakeGpu::Ioctl);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nowhere", 1);
    Allocate(kClient, 0x10, 0x0080);
    Allocate(0x10, 0x11, 0x2080);
    MakeContext(0x100);
    EXPECT_TRUE(QueueMade(device_));
  }
  ~Level3Test() override {
    gpu_.faults.clear();
    process_ops.set_slice(device_, 0);
    EXPECT_TRUE(process_ops.settle());
    // The client is freed, with everything that it has.
    struct {
      uint32_t client = kClient, parent = 0, object = kClient, status = 0;
    } gone;
    ObserveRequest(fd_, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x29, sizeof gone), &gone, 0);
    close(fd_);
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  }

  void Allocate(uint32_t parent, uint32_t object, uint32_t object_class) {
    Alloc request{kClient, parent, object, object_class, 0, 0, 0};
    ObserveRequest(fd_, _IOC(_IOC_READ | _IOC_WRITE, 'F', 0x2B, sizeof request), &request, 0);
  }
  void MakeContext(uint32_t group) {
    Allocate(0x10, group, 0xA06C);
    Allocate(group, group + 1, 0xC86F);
    Allocate(group + 1, group + 2, 0xCBC0);
  }
  XResult SetSlice(uint64_t slice_us) { return process_ops.set_slice(device_, slice_us); }

  static constexpr uint32_t kClient = 0xC1D00001;

  const XDevice device_ = MakeDevice(kDeviceTypeGPU, PciAddress(1, 7, 2, 0));
  int fd_ = memfd_create("control device", MFD_CLOEXEC);
  FakeGpu gpu_;
};

TEST_F(Level3Test, a_stop_that_takes_effect_and_reports_a_timeout_is_undone) {
  gpu_.faults[kDisableChannels] = {kTimedOut, 1, true};
  EXPECT_NE(SetSlice(kSliceNone), kXSchedSuccess);
  EXPECT_FALSE(gpu_.running);
  EXPECT_EQ(SetSlice(0), kXSchedSuccess);
  EXPECT_TRUE(gpu_.running);
}

TEST_F(Level3Test, what_could_not_be_enabled_is_tried_again_until_it_is) {
  ASSERT_EQ(SetSlice(kSliceNone), kXSchedSuccess);
  gpu_.faults[kDisableChannels] = {kTimedOut, 3, false};
  EXPECT_NE(SetSlice(0), kXSchedSuccess);
  EXPECT_FALSE(process_ops.settle());
  EXPECT_FALSE(process_ops.settle());
  EXPECT_FALSE(gpu_.running);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_TRUE(gpu_.running);
  const int calls = gpu_.calls[kDisableChannels];
  EXPECT_TRUE(process_ops.settle());
  EXPECT_EQ(gpu_.calls[kDisableChannels], calls) << "there was nothing left to do";
}

TEST_F(Level3Test, an_enabling_that_reports_a_timeout_is_not_taken_for_done) {
  ASSERT_EQ(SetSlice(kSliceNone), kXSchedSuccess);
  gpu_.faults[kDisableChannels] = {kTimedOut, 1, false};
  EXPECT_NE(SetSlice(0), kXSchedSuccess);
  EXPECT_EQ(SetSlice(0), kXSchedSuccess);
  EXPECT_TRUE(gpu_.running);
}

TEST_F(Level3Test, a_slice_is_set_when_it_reads_back_and_not_before) {
  gpu_.faults[kSetTimeslice] = {kTimedOut, 2, false};
  EXPECT_NE(SetSlice(1), kXSchedSuccess);
  EXPECT_NE(SetSlice(1), kXSchedSuccess);
  EXPECT_EQ(gpu_.slices[0x100], kDrivers);
  EXPECT_EQ(SetSlice(1), kXSchedSuccess);
  EXPECT_EQ(gpu_.slices[0x100], 1u);
}

TEST_F(Level3Test, the_drivers_slice_is_given_back_though_ours_may_have_failed) {
  gpu_.faults[kSetTimeslice] = {kTimedOut, 1, true};
  EXPECT_NE(SetSlice(1), kXSchedSuccess);
  EXPECT_EQ(gpu_.slices[0x100], 1u);
  gpu_.faults[kSetTimeslice] = {kTimedOut, 1, false};
  EXPECT_NE(SetSlice(0), kXSchedSuccess);
  // Meanwhile another slice is wanted. The present one is not the driver's.
  gpu_.faults[kSetTimeslice] = {kTimedOut, 1, false};
  EXPECT_NE(SetSlice(5), kXSchedSuccess);
  EXPECT_EQ(SetSlice(0), kXSchedSuccess);
  EXPECT_EQ(gpu_.slices[0x100], kDrivers);
}

TEST_F(Level3Test, a_slice_that_the_hardware_rounds_is_taken_as_it_is) {
  gpu_.holds_at_most = 50'000;
  EXPECT_NE(SetSlice(100'000), kXSchedSuccess);
  EXPECT_EQ(SetSlice(100'000), kXSchedSuccess);
  EXPECT_TRUE(process_ops.settle());
}

TEST_F(Level3Test, a_group_that_has_gone_needs_nothing) {
  gpu_.faults[kSetTimeslice] = {kGone, 1, false};
  gpu_.faults[kGetTimeslice] = {kGone, 2, false};  // asked for the driver's slice, and whether it is there
  EXPECT_EQ(SetSlice(1), kXSchedSuccess);
}

TEST_F(Level3Test, new_groups_get_the_slice_as_well) {
  ASSERT_EQ(SetSlice(1), kXSchedSuccess);
  MakeContext(0x200);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_EQ(gpu_.slices[0x200], 1u);
}

TEST_F(Level3Test, new_groups_are_stopped_as_well_while_the_process_is_off_the_device) {
  ASSERT_EQ(SetSlice(kSliceNone), kXSchedSuccess);
  const int calls = gpu_.calls[kDisableChannels];
  MakeContext(0x200);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_EQ(gpu_.calls[kDisableChannels], calls + 2) << "one for each group";
  EXPECT_FALSE(gpu_.running);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_EQ(gpu_.calls[kDisableChannels], calls + 2) << "there was nothing left to do";
}

TEST_F(Level3Test, new_groups_of_a_running_process_need_no_call) {
  ASSERT_EQ(SetSlice(kSliceNone), kXSchedSuccess);
  ASSERT_EQ(SetSlice(0), kXSchedSuccess);
  const int calls = gpu_.calls[kDisableChannels];
  MakeContext(0x200);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_EQ(gpu_.calls[kDisableChannels], calls);
}

TEST_F(Level3Test, the_end_of_a_hard_stop_that_fails_is_tried_again) {
  ASSERT_EQ(InterruptQueue(device_), kXSchedSuccess);
  gpu_.faults[kDisableChannels] = {kTimedOut, 1, false};
  EXPECT_EQ(RestoreQueue(device_), kXSchedSuccess);
  EXPECT_FALSE(gpu_.running);
  EXPECT_TRUE(process_ops.settle());
  EXPECT_TRUE(gpu_.running);
}

TEST_F(Level3Test, a_hard_stop_that_reports_a_timeout_leaves_nothing_stopped) {
  gpu_.faults[kDisableChannels] = {kTimedOut, 1, true};
  EXPECT_NE(InterruptQueue(device_), kXSchedSuccess);
  EXPECT_TRUE(gpu_.running);
}

TEST_F(Level3Test, fifty_streams_ask_once_and_again_only_when_groups_have_changed) {
  const int before = gpu_.calls[kGetTimeslice];
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(QueueMade(device_));
  EXPECT_EQ(gpu_.calls[kGetTimeslice], before);
  MakeContext(0x200);
  EXPECT_TRUE(QueueMade(device_));
  EXPECT_EQ(gpu_.calls[kGetTimeslice], before + 1);
}

}  // namespace
}  // namespace xsched::cuda
