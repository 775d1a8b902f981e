// The exact requests for suspending and resuming, over a fake KFD that records them.
#include "hal/hip/kfd/hardware_queues.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "hal/hip/kfd/testing/kfd.h"
#include "hal/hip/kfd/testing/topology.h"

namespace xsched::hip::kfd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Kfd;
using testing::Topology;

constexpr uint32_t kGpu = 0x2a;
constexpr uint32_t kOtherGpu = 0x2b;
const XDevice kDevice = Topology::Device(0xc1);
const XDevice kOtherDevice = Topology::Device(0xc2);
const int kStreams[4] = {};
const void* Stream(int i) { return &kStreams[i]; }

class HardwareQueuesTest : public ::testing::Test {
 protected:
  HardwareQueuesTest() {
    current = this;
    topology_.Add(0);
    topology_.Add(kGpu, 0xc1);
    topology_.Add(kOtherGpu, 0xc2);
    queues_.UseStreamRules({.queues_until_shared = 4, .keep_their_queues = true});
  }

  // Receives the program's and our requests.
  static int Ioctl(int fd, unsigned long request, void* argument) {
    std::lock_guard lock(current->kfd_mutex_);
    EXPECT_EQ(fd, current->file_.get());
    return current->kfd_.Ioctl(request, argument);
  }
  template <typename Arguments>
  int Perform(unsigned long request, Arguments& arguments) {
    return queues_.Perform(file_.get(), request, &arguments, Ioctl);
  }

  // The runtime's requests. The queue's number identifies its ring.
  uint32_t Create(uint32_t gpu = kGpu, uint32_t type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
                  uint32_t save_area = 0x2000, uint32_t ring_size = 0x1000) {
    kfd_ioctl_create_queue_args create{};
    create.ring_base_address = (next_ring_ += 0x10000);
    create.ring_size = ring_size;
    create.gpu_id = gpu;
    create.queue_type = type;
    create.queue_percentage = 100;
    create.queue_priority = 7;
    create.ctx_save_restore_address = 0x50000;
    create.ctx_save_restore_size = save_area;
    return Perform(AMDKFD_IOC_CREATE_QUEUE, create) == 0 ? create.queue_id : 0;
  }
  int Destroy(uint32_t queue) {
    kfd_ioctl_destroy_queue_args destroy{.queue_id = queue};
    return Perform(AMDKFD_IOC_DESTROY_QUEUE, destroy);
  }
  int SetPriority(uint32_t queue, uint32_t priority, uint32_t percentage = 100) {
    kfd_ioctl_update_queue_args update{uint64_t{queue} * 0x10000, queue, 0x1000, percentage, priority};
    const kfd_ioctl_update_queue_args before = update;
    const int result = Perform(AMDKFD_IOC_UPDATE_QUEUE, update);
    EXPECT_EQ(memcmp(&update, &before, sizeof update), 0) << "the program's own argument";
    return result;
  }
  uint32_t CreateStream(int stream, int queues = 1) {
    uint32_t queue = 0;
    queues_.StreamCreating();
    for (int i = 0; i < queues; ++i) queue = Create();
    queues_.StreamCreated(Stream(stream));
    return queue;
  }
  std::vector<std::string> Record() { return kfd_.TakeRecord(); }
  std::string WhyNot(XDevice device) {
    Result<> support = queues_.DeviceSupport(device);
    return support ? "" : support.error().text();
  }

  static HardwareQueuesTest* current;
  std::mutex kfd_mutex_;
  Kfd kfd_;
  Topology topology_;
  UniqueFd file_{open("/dev/null", O_RDWR | O_CLOEXEC)};
  HardwareQueues queues_{topology_.root()};
  uint64_t next_ring_ = 0;
};
HardwareQueuesTest* HardwareQueuesTest::current = nullptr;

// ---- all of the process on a device ----

TEST_F(HardwareQueuesTest,
       a_device_is_stopped_by_its_compute_queues_and_they_are_restored_as_they_were_made) {
  Create();
  Create(kGpu, KFD_IOC_QUEUE_TYPE_SDMA);
  Create(kGpu, KFD_IOC_QUEUE_TYPE_COMPUTE);
  Create(kOtherGpu);
  Record();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update 1: 0 %, priority 7, ring 10000+1000",
                                    "update 3: 0 %, priority 7, ring 30000+1000"));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update 1: 100 %, priority 7, ring 10000+1000",
                                    "update 3: 100 %, priority 7, ring 30000+1000"));
}

TEST_F(HardwareQueuesTest, each_device_is_stopped_for_itself) {
  Create();
  Create(kOtherGpu);
  EXPECT_TRUE(queues_.StopDevice(kOtherDevice));
  EXPECT_TRUE(kfd_.active(1));
  EXPECT_FALSE(kfd_.active(2));
}

// Before ROCm 6.2, all parts are the first one to the runtime.
TEST_F(HardwareQueuesTest, the_parts_of_a_gpu_are_stopped_together) {
  topology_.Add(0x2c, 0xc1, 0, 1);
  const uint32_t first = Create();
  const uint32_t second = Create(0x2c);
  const XDevice part = PartOfDevice(kDevice, 1);
  EXPECT_EQ(WhyNot(part), "");
  EXPECT_TRUE(queues_.StopDevice(part));
  EXPECT_FALSE(kfd_.active(first) || kfd_.active(second));
  EXPECT_TRUE(queues_.LetDeviceGo(part));
  EXPECT_TRUE(kfd_.active(first) && kfd_.active(second));
}

TEST_F(HardwareQueuesTest, a_device_goes_on_when_as_many_have_let_it_go_as_have_stopped_it) {
  Create();
  Record();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("0 %")));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre(HasSubstr("100 %")));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
}

TEST_F(HardwareQueuesTest, a_queue_that_is_made_on_a_stopped_device_is_suspended_at_once) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  Record();
  EXPECT_EQ(Create(), 2u);
  EXPECT_THAT(Record(),
              ElementsAre("create 2: gpu 2a, type 2", "update 2: 0 %, priority 7, ring 20000+1000"));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_TRUE(kfd_.active(2));
}

TEST_F(HardwareQueuesTest, a_queue_that_is_gone_is_asked_nothing_and_its_number_may_come_again) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_EQ(Destroy(1), 0);
  Record();
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
  EXPECT_EQ(Create(kOtherGpu), 1u);
  Record();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
}

TEST_F(HardwareQueuesTest, what_the_runtime_changes_while_suspended_waits_for_the_resumption) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  Record();
  EXPECT_EQ(SetPriority(1, 15, 80), 0);
  EXPECT_THAT(Record(), ElementsAre("update 1: 0 %, priority 15, ring 10000+1000"));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update 1: 80 %, priority 15, ring 10000+1000"));
}

TEST_F(HardwareQueuesTest, what_the_runtime_changed_before_is_kept) {
  Create();
  EXPECT_EQ(SetPriority(1, 0, 0), 0);
  Record();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update 1: 0 %, priority 0, ring 10000+1000",
                                    "update 1: 0 %, priority 0, ring 10000+1000"));
}

TEST_F(HardwareQueuesTest, a_change_that_kfd_refuses_is_the_runtimes_affair) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_EQ(SetPriority(1, 99), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(SetPriority(9, 7), -1);
  EXPECT_EQ(errno, EFAULT);
  Record();
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update 1: 100 %, priority 7, ring 10000+1000"));
}

TEST_F(HardwareQueuesTest, a_queue_that_kfd_does_not_make_is_none) {
  kfd_.Fail(AMDKFD_IOC_CREATE_QUEUE, ENOMEM);
  EXPECT_EQ(Create(), 0u);
  EXPECT_EQ(errno, ENOMEM);
  Record();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
}

TEST_F(HardwareQueuesTest, the_programs_errno_stays_when_ours_fails) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  kfd_.Fail(AMDKFD_IOC_UPDATE_QUEUE, EIO);
  errno = 7;
  EXPECT_EQ(Create(), 2u);
  EXPECT_EQ(errno, 7);
}

// ---- missing support ----

TEST_F(HardwareQueuesTest, a_device_can_be_stopped_before_it_has_a_queue) {
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("no request to /dev/kfd has come by"));
  kfd_ioctl_get_version_args version{};
  Perform(AMDKFD_IOC_GET_VERSION, version);
  EXPECT_EQ(WhyNot(kDevice), "");
}

TEST_F(HardwareQueuesTest, a_gpu_that_the_driver_does_not_name_cannot_be_stopped) {
  Create();
  EXPECT_THAT(WhyNot(Topology::Device(0xee)), HasSubstr("does not name this GPU"));
}

TEST_F(HardwareQueuesTest, a_queue_on_an_unknown_gpu_could_be_anywhere) {
  Create(99);
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("which GPU queue 1 is on is not known"));
  EXPECT_FALSE(queues_.StopDevice(kDevice));
}

TEST_F(HardwareQueuesTest, a_queue_whose_work_would_not_be_saved_is_not_suspended) {
  Create(kGpu, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, 0);
  Record();
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("queue 1 has no memory for what runs"));
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
  EXPECT_EQ(Destroy(1), 0);
  EXPECT_EQ(WhyNot(kDevice), "");
}

TEST_F(HardwareQueuesTest, a_driver_that_saves_nothing_is_not_used) {
  Create();
  topology_.Write("module/amdgpu/parameters/cwsr_enable", "0\n");
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("cwsr_enable=0"));
}

TEST_F(HardwareQueuesTest, more_queues_than_the_table_holds_are_not_suspended_in_part) {
  for (int i = 0; i < 1025; ++i) Create();
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("too many hardware queues"));
  EXPECT_FALSE(queues_.StopDevice(kDevice));
}

// ---- when KFD refuses ----

class Refused : public HardwareQueuesTest, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Errors, Refused,
                         ::testing::Values(EINVAL, EFAULT, EBADF, EPERM, ETIME, ENODEV, EIO, ENOTTY));

TEST_P(Refused, what_was_suspended_goes_on_and_nothing_is_stopped_any_more) {
  Create();
  Create();
  Create();
  Record();
  kfd_.Fail(AMDKFD_IOC_UPDATE_QUEUE, GetParam(), 1, 1);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(Record(), ElementsAre("update 1: 0 %, priority 7, ring 10000+1000", "update fails",
                                    "update 1: 100 %, priority 7, ring 10000+1000",
                                    "update 2: 100 %, priority 7, ring 20000+1000"));
  EXPECT_THAT(log, HasSubstr("suspending hardware queue 2: "));
  EXPECT_THAT(log, HasSubstr("HIP runs with preemption level 1 from now on"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("suspending hardware queue 2"));
}

TEST_P(Refused, a_resumption_is_tried_again_and_the_others_go_on) {
  Create();
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  Record();
  kfd_.Fail(AMDKFD_IOC_UPDATE_QUEUE, GetParam());
  EXPECT_FALSE(queues_.LetDeviceGo(kDevice));
  EXPECT_THAT(Record(), ElementsAre("update fails", "update 1: 100 %, priority 7, ring 10000+1000",
                                    "update 2: 100 %, priority 7, ring 20000+1000"));
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
}

TEST_F(HardwareQueuesTest, a_queue_is_resumed_although_its_suspension_reported_an_error) {
  Create();
  kfd_.FailAfterwards(AMDKFD_IOC_UPDATE_QUEUE, ETIME);
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  EXPECT_TRUE(kfd_.active(1));
}

TEST_F(HardwareQueuesTest, what_stays_suspended_is_said_once_and_tried_with_each_occasion) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  kfd_.Fail(AMDKFD_IOC_UPDATE_QUEUE, EIO, 100);
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(queues_.LetDeviceGo(kDevice));
  EXPECT_FALSE(queues_.LetDeviceGo(kDevice));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("what is on it may never end"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2);
  kfd_.FailNoMore();
  Create();
  EXPECT_TRUE(kfd_.active(1));
}

TEST_F(HardwareQueuesTest, a_file_that_the_program_has_closed_is_not_written_to) {
  Create();
  Record();
  // The descriptor's number now belongs to another file.
  const UniqueFd other(open(topology_.root(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  dup2(other.get(), file_.get());
  EXPECT_FALSE(queues_.StopDevice(kDevice));
  EXPECT_THAT(Record(), IsEmpty());
  EXPECT_THAT(WhyNot(kDevice), HasSubstr("the program has closed /dev/kfd"));
}

// ---- one stream ----

TEST_F(HardwareQueuesTest, a_stream_with_a_queue_of_its_own_is_stopped_alone) {
  CreateStream(0);
  CreateStream(1);
  Record();
  EXPECT_TRUE(queues_.StreamSupport(Stream(1)));
  EXPECT_TRUE(queues_.StopStream(Stream(1)));
  EXPECT_THAT(Record(), ElementsAre("update 2: 0 %, priority 7, ring 20000+1000"));
  EXPECT_TRUE(queues_.LetStreamGo(Stream(1)));
  EXPECT_THAT(Record(), ElementsAre("update 2: 100 %, priority 7, ring 20000+1000"));
}

TEST_F(HardwareQueuesTest, a_stream_is_stopped_while_itself_or_its_device_is) {
  CreateStream(0);
  EXPECT_TRUE(queues_.StopStream(Stream(0)));
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  EXPECT_TRUE(queues_.LetStreamGo(Stream(0)));
  EXPECT_FALSE(kfd_.active(1));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_TRUE(kfd_.active(1));
}

TEST_F(HardwareQueuesTest, a_stream_for_which_no_queue_was_made_or_several_has_none_of_its_own) {
  CreateStream(0, 0);
  CreateStream(1, 2);
  Create();
  EXPECT_FALSE(queues_.StreamSupport(Stream(0)));
  EXPECT_FALSE(queues_.StreamSupport(Stream(1)));
  EXPECT_FALSE(queues_.StopStream(Stream(1)));
  EXPECT_FALSE(queues_.StreamSupport(nullptr));
}

TEST_F(HardwareQueuesTest, the_queue_that_rocr_makes_for_itself_before_the_first_is_not_the_streams) {
  constexpr uint32_t kSaveArea = 0x2000, kRingOfStream = 0x100000;
  queues_.StreamCreating();
  const uint32_t rocrs = Create();
  const uint32_t own = Create(kGpu, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, kSaveArea, kRingOfStream);
  queues_.StreamCreated(Stream(0));
  EXPECT_TRUE(queues_.StopStream(Stream(0)));
  EXPECT_FALSE(kfd_.active(own));
  EXPECT_TRUE(kfd_.active(rocrs));
}

TEST_F(HardwareQueuesTest, queues_that_another_thread_makes_meanwhile_are_not_the_streams) {
  queues_.StreamCreating();
  const uint32_t own = Create();
  std::thread([this] { Create(); }).join();
  queues_.StreamCreated(Stream(0));
  EXPECT_TRUE(queues_.StopStream(Stream(0)));
  EXPECT_FALSE(kfd_.active(own));
  EXPECT_TRUE(kfd_.active(2));
}

TEST_F(HardwareQueuesTest, a_stream_whose_making_failed_leaves_its_queue_to_nobody) {
  queues_.StreamCreating();
  Create();
  queues_.StreamCreated(nullptr);
  Create();
  queues_.StreamCreated(Stream(0));
  EXPECT_FALSE(queues_.StreamSupport(Stream(0)));
}

TEST_F(HardwareQueuesTest, when_streams_begin_to_share_queues_none_is_stopped_alone_any_more) {
  CreateStream(0);
  CreateStream(1);
  EXPECT_TRUE(queues_.StopStream(Stream(0)));
  Create();
  EXPECT_FALSE(kfd_.active(1));
  Create();  // the fourth: the next stream would share one
  EXPECT_TRUE(kfd_.active(1));
  EXPECT_FALSE(queues_.StopStream(Stream(1)));
  EXPECT_TRUE(queues_.LetStreamGo(Stream(0)));
  // A stream that shares a queue may do so as long as it lives.
  Destroy(4);
  EXPECT_FALSE(queues_.StreamSupport(Stream(1)));
}

TEST_F(HardwareQueuesTest, a_runtime_that_moves_streams_between_queues_has_none_of_its_own) {
  queues_.UseStreamRules({.queues_until_shared = 64, .keep_their_queues = false});
  CreateStream(0);
  Result<> support = queues_.StreamSupport(Stream(0));
  ASSERT_FALSE(support);
  EXPECT_THAT(support.error().text(), HasSubstr("DEBUG_HIP_DYNAMIC_QUEUES=0"));
}

TEST_F(HardwareQueuesTest, a_stream_goes_on_before_it_is_destroyed_for_the_runtime_waits_for_it) {
  CreateStream(0);
  EXPECT_TRUE(queues_.StopStream(Stream(0)));
  queues_.StreamDestroying(Stream(0));
  EXPECT_TRUE(kfd_.active(1));
  // The runtime may keep the queue for another stream.
  EXPECT_FALSE(queues_.StopStream(Stream(0)));
  EXPECT_TRUE(queues_.LetStreamGo(Stream(0)));
}

// ---- threads and processes ----

TEST_F(HardwareQueuesTest, a_forked_child_has_no_queues_and_stops_nothing) {
  Create();
  EXPECT_TRUE(queues_.StopDevice(kDevice));
  Record();
  const pid_t child = fork();
  if (child == 0) {
    queues_.ForgetAfterFork();
    const bool quiet = !queues_.DeviceSupport(kDevice) && queues_.LetDeviceGo(kDevice) && Record().empty();
    _exit(quiet ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(kfd_.active(1));
  EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
  EXPECT_TRUE(kfd_.active(1));
}

TEST_F(HardwareQueuesTest, whatever_threads_do_all_is_active_when_nobody_stops_anything) {
  queues_.UseStreamRules({.queues_until_shared = 1000, .keep_their_queues = true});
  auto work = [this](unsigned seed) {
    std::minstd_rand random(seed);
    for (int i = 0; i < 200; ++i) {
      queues_.StreamCreating();
      kfd_ioctl_create_queue_args create{};
      create.ring_size = 0x1000;
      create.gpu_id = random() % 2 != 0 ? kGpu : kOtherGpu;
      create.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
      create.queue_percentage = 100;
      create.ctx_save_restore_address = create.ctx_save_restore_size = 0x1000;
      EXPECT_EQ(Perform(AMDKFD_IOC_CREATE_QUEUE, create), 0);
      const auto* stream = reinterpret_cast<const void*>(uint64_t{seed} << 32 | static_cast<unsigned>(i + 1));
      queues_.StreamCreated(stream);
      EXPECT_TRUE(queues_.StopStream(stream));
      EXPECT_TRUE(queues_.StopDevice(kDevice));
      kfd_ioctl_update_queue_args update{0, create.queue_id, 0x1000, 100, static_cast<uint32_t>(i % 16)};
      EXPECT_EQ(Perform(AMDKFD_IOC_UPDATE_QUEUE, update), 0);
      EXPECT_TRUE(queues_.LetStreamGo(stream));
      EXPECT_TRUE(queues_.LetDeviceGo(kDevice));
      if (random() % 4 != 0) {
        queues_.StreamDestroying(stream);
        EXPECT_EQ(Destroy(create.queue_id), 0);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(kfd_.queues().empty());
  for (const auto& [id, queue] : kfd_.queues()) EXPECT_TRUE(queue.active()) << id;
}

}  // namespace
}  // namespace xsched::hip::kfd
