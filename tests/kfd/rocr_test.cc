// AMD's own ROCr over the stand-in for the kernel's driver, without XSched: that the stand-in is a driver to
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "standin_amdgpu.h"

namespace {

using ::testing::ContainsRegex;

#define SUCCEEDS(call) ASSERT_EQ(call, HSA_STATUS_SUCCESS)

class Rocr : public ::testing::Test {
 protected:
  void SetUp() override {
    SUCCEEDS(hsa_init());
    SUCCEEDS(hsa_iterate_agents(AddIfGpu, &gpus_));
    ASSERT_FALSE(gpus_.empty());
  }
  void TearDown() override { EXPECT_EQ(hsa_shut_down(), HSA_STATUS_SUCCESS); }

  static hsa_status_t AddIfGpu(hsa_agent_t agent, void* gpus) {
    if (Info<hsa_device_type_t>(agent, HSA_AGENT_INFO_DEVICE) == HSA_DEVICE_TYPE_GPU) {
      static_cast<std::vector<hsa_agent_t>*>(gpus)->push_back(agent);
    }
    return HSA_STATUS_SUCCESS;
  }
  template <typename T>
  static T Info(hsa_agent_t agent, int what) {
    T value{};
    EXPECT_EQ(hsa_agent_get_info(agent, static_cast<hsa_agent_info_t>(what), &value), HSA_STATUS_SUCCESS);
    return value;
  }
  hsa_queue_t* NewQueue() {
    hsa_queue_t* queue = nullptr;
    EXPECT_EQ(hsa_queue_create(gpus_[0], 256, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX,
                               &queue),
              HSA_STATUS_SUCCESS);
    return queue;
  }
  static hsa_signal_t NewSignal(hsa_signal_value_t value) {
    hsa_signal_t signal{};
    EXPECT_EQ(hsa_signal_create(value, 0, nullptr, &signal), HSA_STATUS_SUCCESS);
    return signal;
  }
  // A packet of this type (barrier-and, barrier-or) that waits for signals. Returns its completion.
  static hsa_signal_t Barrier(hsa_queue_t* queue, hsa_packet_type_t type,
                              std::initializer_list<hsa_signal_t> waits_for) {
    const hsa_signal_t completion = NewSignal(1);
    const uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
    auto* packet = static_cast<hsa_barrier_and_packet_t*>(queue->base_address) + index % queue->size;
    hsa_barrier_and_packet_t barrier{};
    std::copy(waits_for.begin(), waits_for.end(), barrier.dep_signal);
    barrier.completion_signal = completion;
    std::memcpy(reinterpret_cast<char*>(packet) + sizeof packet->header,
                reinterpret_cast<char*>(&barrier) + sizeof barrier.header,
                sizeof barrier - sizeof barrier.header);
    __atomic_store_n(&packet->header, static_cast<uint16_t>(type << HSA_PACKET_HEADER_TYPE),
                     __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(index));
    return completion;
  }
  // Sleeps in the driver until the signal is 0.
  static bool AwaitZero(hsa_signal_t signal) {
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                     HSA_WAIT_STATE_BLOCKED) == 0;
  }
  static bool StaysAbove0(hsa_signal_t signal) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return hsa_signal_load_scacquire(signal) > 0;
  }
  static std::string Record() {
    char text[8192];
    standin_amdgpu_take_record(text, sizeof text);
    return text;
  }

  std::vector<hsa_agent_t> gpus_;
};

TEST_F(Rocr, finds_the_gpus_of_the_machine) {
  ASSERT_EQ(gpus_.size(), 2u);
  for (hsa_agent_t gpu : gpus_) {
    EXPECT_STREQ((Info<std::array<char, 64>>(gpu, HSA_AGENT_INFO_NAME).data()), "gfx942");
    EXPECT_EQ(Info<uint32_t>(gpu, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT), 80u);
  }
  EXPECT_EQ(Info<uint32_t>(gpus_[0], HSA_AMD_AGENT_INFO_BDFID), 5u << 8);
  EXPECT_EQ(Info<uint32_t>(gpus_[1], HSA_AMD_AGENT_INFO_BDFID), 6u << 8);
}

TEST_F(Rocr, completes_a_barrier_packet) {
  hsa_queue_t* queue = NewQueue();
  for (int i = 0; i < 1000; ++i) {
    const hsa_signal_t done = Barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {});
    ASSERT_TRUE(AwaitZero(done));
    hsa_signal_destroy(done);
  }
  SUCCEEDS(hsa_queue_destroy(queue));
}

TEST_F(Rocr, waits_for_all_signals_of_a_barrier_or_for_any) {
  hsa_queue_t* queue = NewQueue();
  const hsa_signal_t first = NewSignal(1), second = NewSignal(1);
  const hsa_signal_t any = Barrier(queue, HSA_PACKET_TYPE_BARRIER_OR, {first, second});
  const hsa_signal_t all = Barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {first, second});
  EXPECT_TRUE(StaysAbove0(any));
  hsa_signal_store_screlease(first, 0);
  EXPECT_TRUE(AwaitZero(any));
  EXPECT_TRUE(StaysAbove0(all));
  hsa_signal_store_screlease(second, 0);
  EXPECT_TRUE(AwaitZero(all));
  for (hsa_signal_t signal : {first, second, any, all}) hsa_signal_destroy(signal);
  SUCCEEDS(hsa_queue_destroy(queue));
}

TEST_F(Rocr, makes_a_small_queue_for_itself_before_the_first_of_a_program) {
  Record();
  hsa_queue_t* queue = NewQueue();
  EXPECT_THAT(Record(),
              ContainsRegex("^create [0-9]+: gpu 1000, type 2, 100 %, priority 7, ring [0-9a-f]+[+]1000\n"
                            "create [0-9]+: gpu 1000, type 2, 100 %, priority 7, ring [0-9a-f]+[+]4000\n$"));
  hsa_queue_t* second = NewQueue();
  EXPECT_THAT(Record(),
              ContainsRegex("^create [0-9]+: gpu 1000, type 2, 100 %, priority 7, ring [0-9a-f]+[+]4000\n$"));
  SUCCEEDS(hsa_queue_destroy(queue));
  SUCCEEDS(hsa_queue_destroy(second));
}

TEST_F(Rocr, asks_for_a_priority_by_a_request_that_sets_everything) {
  hsa_queue_t* queue = NewQueue();
  Record();
  SUCCEEDS(hsa_amd_queue_set_priority(queue, HSA_AMD_QUEUE_PRIORITY_HIGH));
  EXPECT_THAT(Record(), ContainsRegex("^update [0-9]+: 100 %, priority 11, ring [0-9a-f]+[+]4000\n$"));
  SUCCEEDS(hsa_queue_destroy(queue));
}

TEST_F(Rocr, destroys_the_queues_that_it_made) {
  SUCCEEDS(hsa_queue_destroy(NewQueue()));
  SUCCEEDS(hsa_shut_down());
  EXPECT_EQ(standin_amdgpu_queues(), 0u);
  SUCCEEDS(hsa_init());
}

// ---- copies ----

// The first memory of an agent that a program may allocate from.
hsa_amd_memory_pool_t PoolOf(hsa_agent_t agent) {
  hsa_amd_memory_pool_t found{};
  hsa_amd_agent_iterate_memory_pools(
      agent,
      [](hsa_amd_memory_pool_t pool, void* to) {
        bool may = false;
        hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &may);
        if (!may) return HSA_STATUS_SUCCESS;
        *static_cast<hsa_amd_memory_pool_t*>(to) = pool;
        return HSA_STATUS_INFO_BREAK;
      },
      &found);
  return found;
}

TEST_F(Rocr, copies_between_gpus_by_their_copy_engines) {
  constexpr size_t kCount = 1 << 20;
  int* memory[2] = {};
  for (int i = 0; i < 2; ++i) {
    SUCCEEDS(hsa_amd_memory_pool_allocate(PoolOf(gpus_[i]), kCount * sizeof(int), 0,
                                          reinterpret_cast<void**>(&memory[i])));
    SUCCEEDS(hsa_amd_agents_allow_access(2, gpus_.data(), nullptr, memory[i]));
  }
  for (size_t i = 0; i < kCount; ++i) memory[0][i] = static_cast<int>(i);
  const hsa_signal_t done = NewSignal(1);
  const uint32_t before = standin_amdgpu_queues();
  SUCCEEDS(hsa_amd_memory_async_copy(memory[1], gpus_[1], memory[0], gpus_[0], kCount * sizeof(int), 0,
                                     nullptr, done));
  EXPECT_TRUE(AwaitZero(done));
  EXPECT_EQ(std::memcmp(memory[0], memory[1], kCount * sizeof(int)), 0);
  EXPECT_EQ(standin_amdgpu_queues(), before) << "it is no kernel that copies";
  EXPECT_THAT(Record(), ContainsRegex("create [0-9]+: gpu 100[01], type [13], "));
  hsa_signal_destroy(done);
  for (int* one : memory) SUCCEEDS(hsa_amd_memory_pool_free(one));
}

}  // namespace
