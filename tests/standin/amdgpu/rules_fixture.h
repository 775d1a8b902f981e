// What the tests of the rules share: a program of the driver without AMD's runtime.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "standin_amdgpu.h"

namespace standin_amdgpu {
inline constexpr uint32_t kGpu = 0x1000;
inline constexpr uint32_t kPage = 4096;
inline constexpr uint32_t kPackets = kPage / sizeof(hsa_barrier_and_packet_t);
// Of a GPU as in machine.py.
inline constexpr uint32_t kControlStack = 8192;
inline constexpr uint32_t kSaved = kControlStack + 20 * 0x95000;
inline constexpr uint32_t kSaveArea = (kSaved + 800 * 32) * 4;

struct Buffer {
  void* memory = nullptr;
  uint64_t handle = 0;

  uint64_t address() const { return reinterpret_cast<uint64_t>(memory); }
};

struct Signal : amd_signal_t {
  explicit Signal(int64_t initial) : amd_signal_t{} { Set(initial); }

  void Set(int64_t now) { __atomic_store_n(&value, now, __ATOMIC_RELEASE); }
  int64_t Get() const { return __atomic_load_n(&value, __ATOMIC_ACQUIRE); }
  hsa_signal_t handle() const { return {reinterpret_cast<uint64_t>(static_cast<const amd_signal_t*>(this))}; }

  bool Becomes0() const {
    for (int i = 0; i < 5000 && Get() != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Get() == 0;
  }
  bool StaysAt1() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return Get() == 1;
  }
};

class AmdgpuRules : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(kfd_, 0);
    ASSERT_GE(render_, 0);
  }
  void TearDown() override {
    may_end = true;
    standin_amdgpu_fail(_IOC_NR(AMDKFD_IOC_UPDATE_QUEUE), 0, 0, 0, 0);
    for (uint32_t queue = 1; queue < 8; ++queue) Destroy(queue);
    close(kfd_);
    close(render_);
  }

  // 0, or the error.
  template <typename Arguments>
  int Do(unsigned long request, Arguments& arguments) const {
    return ioctl(kfd_, request, &arguments) == 0 ? 0 : errno;
  }

  // ---- memory ----

  Buffer Allocate(size_t size) const {
    Buffer buffer;
    buffer.memory = mmap(nullptr, size, PROT_NONE, MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, -1, 0);
    kfd_ioctl_alloc_memory_of_gpu_args args{};
    args.va_addr = buffer.address();
    args.size = size;
    args.gpu_id = kGpu;
    args.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
    EXPECT_EQ(Do(AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, args), 0);
    EXPECT_EQ(mmap(buffer.memory, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render_,
                   static_cast<off_t>(args.mmap_offset)),
              buffer.memory);
    buffer.handle = args.handle;
    return buffer;
  }
  int Map(uint64_t handle) const {
    kfd_ioctl_map_memory_to_gpu_args args{
        .handle = handle, .device_ids_array_ptr = 0, .n_devices = 1, .n_success = 0};
    return Do(AMDKFD_IOC_MAP_MEMORY_TO_GPU, args);
  }
  int Unmap(uint64_t handle) const {
    kfd_ioctl_unmap_memory_from_gpu_args args{
        .handle = handle, .device_ids_array_ptr = 0, .n_devices = 1, .n_success = 0};
    return Do(AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, args);
  }
  int Free(uint64_t handle) const {
    kfd_ioctl_free_memory_of_gpu_args args{handle};
    return Do(AMDKFD_IOC_FREE_MEMORY_OF_GPU, args);
  }
  Buffer Mapped(size_t size) const {
    const Buffer buffer = Allocate(size);
    EXPECT_EQ(Map(buffer.handle), 0);
    return buffer;
  }

  // ---- queues ----

  // What a queue needs; the same for each queue of a test.
  kfd_ioctl_create_queue_args Wanted() const {
    kfd_ioctl_create_queue_args args{};
    args.ring_base_address = ring_.address();
    args.ring_size = kPage;
    args.read_pointer_address = pointers_[0].address();
    args.write_pointer_address = pointers_[1].address();
    args.gpu_id = kGpu;
    args.queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
    args.queue_percentage = 100;
    args.queue_priority = 7;
    args.ctx_save_restore_address = save_area_.address();
    args.ctx_save_restore_size = kSaved;
    args.ctl_stack_size = kControlStack;
    return args;
  }
  int Create(kfd_ioctl_create_queue_args& args) const {
    for (uint32_t i = 0; i < kPackets; ++i) packets()[i].header = HSA_PACKET_TYPE_INVALID;
    read_index() = 0;
    return Do(AMDKFD_IOC_CREATE_QUEUE, args);
  }
  int CreateWith(void (*change)(kfd_ioctl_create_queue_args&)) const {
    kfd_ioctl_create_queue_args args = Wanted();
    change(args);
    return Create(args);
  }
  // A queue whose doorbell is within reach.
  uint32_t Make() {
    kfd_ioctl_create_queue_args args = Wanted();
    EXPECT_EQ(Create(args), 0);
    const off_t page = static_cast<off_t>(args.doorbell_offset / kPage * kPage);
    auto* doorbells =
        static_cast<char*>(mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, kfd_, page));
    doorbell_ = reinterpret_cast<std::atomic<uint64_t>*>(doorbells + args.doorbell_offset % kPage);
    return args.queue_id;
  }
  int Destroy(uint32_t queue) const {
    kfd_ioctl_destroy_queue_args args{.queue_id = queue, .pad = 0};
    return Do(AMDKFD_IOC_DESTROY_QUEUE, args);
  }
  int Update(uint32_t queue, uint32_t percentage, uint32_t priority = 7, uint32_t size = kPage) const {
    kfd_ioctl_update_queue_args args{ring_.address(), queue, size, percentage, priority};
    return Do(AMDKFD_IOC_UPDATE_QUEUE, args);
  }

  // ---- packets ----

  hsa_barrier_and_packet_t* packets() const { return static_cast<hsa_barrier_and_packet_t*>(ring_.memory); }
  std::atomic<uint64_t>& read_index() const {
    return *static_cast<std::atomic<uint64_t>*>(pointers_[0].memory);
  }

  void Write(uint64_t index, uint16_t type, const Signal& completion,
             std::initializer_list<hsa_signal_t> waits_for = {}) const {
    hsa_barrier_and_packet_t& packet = packets()[index];
    std::memset(&packet.dep_signal, 0, sizeof packet.dep_signal);
    std::copy(waits_for.begin(), waits_for.end(), packet.dep_signal);
    packet.completion_signal = completion.handle();
    __atomic_store_n(&packet.header, static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE), __ATOMIC_RELEASE);
  }
  void Ring(uint64_t index) { doorbell_->store(index); }

  // ---- events ----

  uint32_t NewEvent() const {
    kfd_ioctl_create_event_args args{};
    args.event_type = KFD_IOC_EVENT_SIGNAL;
    args.auto_reset = 1;
    EXPECT_EQ(Do(AMDKFD_IOC_CREATE_EVENT, args), 0);
    return args.event_id;
  }
  int SetEvent(uint32_t event) const {
    kfd_ioctl_set_event_args args{.event_id = event, .pad = 0};
    return Do(AMDKFD_IOC_SET_EVENT, args);
  }
  int DestroyEvent(uint32_t event) const {
    kfd_ioctl_destroy_event_args args{.event_id = event, .pad = 0};
    return Do(AMDKFD_IOC_DESTROY_EVENT, args);
  }
  struct Waited {
    int error;
    uint32_t result;
    uint64_t age;
  };
  Waited Wait(uint32_t event, uint32_t timeout_ms, uint64_t age = 0) const {
    kfd_event_data data{};
    data.event_id = event;
    std::memcpy(&data, &age, sizeof age);
    kfd_ioctl_wait_events_args args{};
    args.events_ptr = reinterpret_cast<uint64_t>(&data);
    args.num_events = 1;
    args.timeout = timeout_ms;
    Waited waited{};
    waited.error = Do(AMDKFD_IOC_WAIT_EVENTS, args);
    waited.result = args.wait_result;
    std::memcpy(&waited.age, &data, sizeof waited.age);
    return waited;
  }

  // The wave of kernels without a name: it counts until it may end.
  static inline std::atomic<uint64_t> steps{0};
  static inline std::atomic<bool> may_end{false};
  static int Count(void* state, const void*) {
    uint64_t count;
    std::memcpy(&count, state, sizeof count);
    ++count;
    std::memcpy(state, &count, sizeof count);
    steps = count;
    return may_end ? 0 : 1;
  }

  const int kfd_ = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  const int render_ = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  const Buffer ring_ = Mapped(kPage);
  const Buffer pointers_[2] = {Mapped(kPage), Mapped(kPage)};
  const Buffer save_area_ = Mapped(kSaveArea);
  std::atomic<uint64_t>* doorbell_ = nullptr;
};

}  // namespace standin_amdgpu
