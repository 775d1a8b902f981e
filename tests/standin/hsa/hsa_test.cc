// The software HSA agent alone: what the HIP runtime relies on, and what tests use.
#include <gtest/gtest.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ext_image.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "standin_hsa.h"

namespace standin_hsa_test {
namespace {

using namespace std::chrono_literals;

#define SUCCEEDS(call) ASSERT_EQ(call, HSA_STATUS_SUCCESS)

class Hsa : public testing::Test {
 protected:
  void SetUp() override {
    SUCCEEDS(hsa_init());
    auto keep_gpu = [](hsa_agent_t agent, void* gpu) {
      hsa_device_type_t type;
      hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
      if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(gpu) = agent;
      return HSA_STATUS_SUCCESS;
    };
    SUCCEEDS(hsa_iterate_agents(keep_gpu, &gpu_));
    SUCCEEDS(hsa_queue_create(gpu_, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, &queue_));
  }
  void TearDown() override {
    if (queue_ != nullptr) {
      EXPECT_EQ(hsa_queue_destroy(queue_), HSA_STATUS_SUCCESS);
    }
    for (hsa_signal_t signal : signals_) hsa_signal_destroy(signal);
    EXPECT_EQ(hsa_shut_down(), HSA_STATUS_SUCCESS);
  }

  hsa_signal_t Signal(hsa_signal_value_t value = 1) {
    hsa_signal_t signal{};
    EXPECT_EQ(hsa_signal_create(value, 0, nullptr, &signal), HSA_STATUS_SUCCESS);
    signals_.push_back(signal);
    return signal;
  }
  template <typename Packet>
  void Submit(Packet packet, uint16_t type) {
    static_assert(sizeof(Packet) == 64);
    const uint64_t index = hsa_queue_add_write_index_screlease(queue_, 1);
    char* slot = static_cast<char*>(queue_->base_address) + index % queue_->size * sizeof packet;
    std::memcpy(slot + sizeof(uint16_t), reinterpret_cast<char*>(&packet) + sizeof(uint16_t),
                sizeof packet - sizeof(uint16_t));
    __atomic_store_n(reinterpret_cast<uint16_t*>(slot), type << HSA_PACKET_HEADER_TYPE, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue_->doorbell_signal, static_cast<hsa_signal_value_t>(index));
  }
  // The signal that shows that the barrier has passed.
  hsa_signal_t SubmitBarrier(std::vector<hsa_signal_t> after, uint16_t type = HSA_PACKET_TYPE_BARRIER_AND) {
    hsa_barrier_and_packet_t packet{};
    for (size_t i = 0; i < after.size(); ++i) packet.dep_signal[i] = after[i];
    packet.completion_signal = Signal();
    Submit(packet, type);
    return packet.completion_signal;
  }
  static bool Done(hsa_signal_t signal, std::chrono::nanoseconds within = 20s) {
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0,
                                     static_cast<uint64_t>(within.count()), HSA_WAIT_STATE_BLOCKED) == 0;
  }

  hsa_agent_t gpu_ = {};
  hsa_queue_t* queue_ = nullptr;
  std::vector<hsa_signal_t> signals_;
};

TEST_F(Hsa, a_wait_for_a_signal_ends_with_its_change_or_with_its_time) {
  hsa_signal_t signal = Signal();
  EXPECT_FALSE(Done(signal, 5ms));
  std::thread other([&] { hsa_signal_subtract_relaxed(signal, 1); });
  EXPECT_TRUE(Done(signal));
  other.join();
}

TEST_F(Hsa, a_handler_is_called_again_as_long_as_it_wants) {
  struct State {
    std::atomic<int> calls{0};
    hsa_signal_t done;
  } state;
  state.done = Signal();
  hsa_signal_t signal = Signal();
  auto handler = [](hsa_signal_value_t, void* argument) {
    auto& its = *static_cast<State*>(argument);
    if (++its.calls < 3) return true;
    hsa_signal_subtract_relaxed(its.done, 1);
    return false;
  };
  SUCCEEDS(hsa_amd_signal_async_handler(signal, HSA_SIGNAL_CONDITION_LT, 1, handler, &state));
  hsa_signal_subtract_relaxed(signal, 1);
  ASSERT_TRUE(Done(state.done));
  EXPECT_EQ(state.calls, 3);
}

TEST_F(Hsa, a_handler_that_is_due_has_run_when_handlers_have_been_awaited) {
  static std::atomic<int> calls{0};
  auto handler = [](hsa_signal_value_t, void*) {
    std::this_thread::sleep_for(1ms);
    return ++calls < 3;
  };
  SUCCEEDS(hsa_amd_signal_async_handler(Signal(0), HSA_SIGNAL_CONDITION_LT, 1, handler, nullptr));
  standin_hsa_await_handlers();
  EXPECT_EQ(calls, 3);
}

// A program that ends frees what its handlers would use.
TEST_F(Hsa, no_handler_runs_after_the_last_user_has_shut_down) {
  static std::atomic<int> calls{0};
  static std::atomic<bool> may_return{false};
  static std::atomic<bool> again{true};
  auto handler = [](hsa_signal_value_t, void*) {
    ++calls;
    while (!may_return) std::this_thread::yield();
    return again.load();
  };
  hsa_signal_t signal = Signal(0);
  SUCCEEDS(hsa_amd_signal_async_handler(signal, HSA_SIGNAL_CONDITION_LT, 1, handler, nullptr));
  while (calls == 0) std::this_thread::yield();
  std::atomic<bool> is_down{false};
  std::thread stopper([&] {
    EXPECT_EQ(hsa_shut_down(), HSA_STATUS_SUCCESS);
    is_down = true;
  });
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(is_down) << "it waits for the handler that runs";
  may_return = true;
  stopper.join();
  const int before = calls;
  std::this_thread::sleep_for(5ms);
  EXPECT_EQ(calls, before);
  SUCCEEDS(hsa_init());
  while (calls == before) std::this_thread::yield();
  // The signal goes now.
  again = false;
  standin_hsa_await_handlers();
}

std::string IsaOf(hsa_agent_t gpu) {
  char name[128] = "";
  auto keep_name = [](hsa_isa_t isa, void* to) { return hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, to); };
  EXPECT_EQ(hsa_agent_iterate_isas(gpu, keep_name, name), HSA_STATUS_SUCCESS);
  return name;
}

class HsaOfRdna : public Hsa {
 protected:
  void SetUp() override {
    // Read by the first hsa_init.
    setenv("STANDIN_HSA_ISA", "gfx1100", 1);
    Hsa::SetUp();
  }
};

TEST_F(Hsa, a_gpu_of_cdna_says_which_features_its_isa_has) {
  EXPECT_EQ(IsaOf(gpu_), "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-");
}

TEST_F(HsaOfRdna, its_isa_has_no_features_and_its_waves_are_half_as_wide) {
  EXPECT_EQ(IsaOf(gpu_), "amdgcn-amd-amdhsa--gfx1100");
  uint32_t width = 0;
  SUCCEEDS(hsa_agent_get_info(gpu_, HSA_AGENT_INFO_WAVEFRONT_SIZE, &width));
  EXPECT_EQ(width, 32u);
}

TEST_F(Hsa, a_gpu_says_how_rows_of_images_are_aligned) {
  uint8_t extensions[128] = {};
  SUCCEEDS(hsa_agent_get_info(gpu_, HSA_AGENT_INFO_EXTENSIONS, extensions));
  EXPECT_EQ(extensions[0], 1 << HSA_EXTENSION_IMAGES);
  uint32_t alignment = 0;
  SUCCEEDS(hsa_agent_get_info(
      gpu_, static_cast<hsa_agent_info_t>(HSA_EXT_AGENT_INFO_IMAGE_LINEAR_ROW_PITCH_ALIGNMENT), &alignment));
  EXPECT_EQ(alignment, 256u);
}

TEST_F(Hsa, packets_run_in_order_and_more_of_them_than_the_ring_holds) {
  hsa_signal_t last{};
  for (int i = 0; i < 200; ++i) {
    while (hsa_queue_load_write_index_relaxed(queue_) - hsa_queue_load_read_index_scacquire(queue_) >=
           queue_->size) {
      std::this_thread::yield();
    }
    last = SubmitBarrier({});
  }
  ASSERT_TRUE(Done(last));
  for (hsa_signal_t signal : signals_) EXPECT_EQ(hsa_signal_load_relaxed(signal), 0);
}

TEST_F(Hsa, a_barrier_waits_for_all_of_its_signals_or_for_one) {
  hsa_signal_t a = Signal(), b = Signal();
  hsa_signal_t any = SubmitBarrier({a, b}, HSA_PACKET_TYPE_BARRIER_OR);
  hsa_signal_t all = SubmitBarrier({a, b});
  hsa_signal_store_screlease(b, 0);
  ASSERT_TRUE(Done(any));
  EXPECT_FALSE(Done(all, 5ms));
  hsa_signal_store_screlease(a, 0);
  EXPECT_TRUE(Done(all));
}

TEST_F(Hsa, a_barrier_on_a_value_sees_what_is_written_through_the_signals_address) {
  hsa_amd_barrier_value_packet_t packet{};
  packet.header.AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;
  packet.signal = Signal(0);
  packet.value = 4;
  packet.mask = 0xff;
  packet.cond = HSA_SIGNAL_CONDITION_GTE;
  packet.completion_signal = Signal();
  Submit(packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
  volatile hsa_signal_value_t* value = nullptr;
  SUCCEEDS(hsa_amd_signal_value_pointer(packet.signal, &value));
  std::atomic_ref<hsa_signal_value_t> written(const_cast<hsa_signal_value_t&>(*value));
  written = 0x103;
  EXPECT_FALSE(Done(packet.completion_signal, 5ms));
  written = 0x104;
  EXPECT_TRUE(Done(packet.completion_signal));
}

TEST_F(Hsa, a_queue_can_go_while_it_waits) {
  SubmitBarrier({Signal()});
  EXPECT_EQ(hsa_queue_destroy(queue_), HSA_STATUS_SUCCESS);
  queue_ = nullptr;
}

TEST_F(Hsa, a_copy_waits_for_its_signals_and_lets_others_pass) {
  int from[2] = {1, 2}, to[2] = {0, 0};
  hsa_signal_t gate = Signal(), late = Signal(), early = Signal();
  SUCCEEDS(hsa_amd_memory_async_copy(&to[0], gpu_, &from[0], gpu_, sizeof(int), 1, &gate, late));
  SUCCEEDS(hsa_amd_memory_async_copy(&to[1], gpu_, &from[1], gpu_, sizeof(int), 0, nullptr, early));
  ASSERT_TRUE(Done(early));
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(to[1], 2);
  hsa_signal_store_screlease(gate, 0);
  ASSERT_TRUE(Done(late));
  EXPECT_EQ(to[0], 1);
  hsa_amd_profiling_async_copy_time_t time{};
  SUCCEEDS(hsa_amd_profiling_get_async_copy_time(late, &time));
  EXPECT_LE(time.start, time.end);
  EXPECT_GT(time.start, 0u);
}

TEST_F(Hsa, memory_is_known_by_any_address_in_it_until_it_is_freed) {
  auto keep_first = [](hsa_amd_memory_pool_t pool, void* kept) {
    *static_cast<hsa_amd_memory_pool_t*>(kept) = pool;
    return HSA_STATUS_INFO_BREAK;
  };
  hsa_amd_memory_pool_t pool{};
  ASSERT_EQ(hsa_amd_agent_iterate_memory_pools(gpu_, keep_first, &pool), HSA_STATUS_INFO_BREAK);
  void* memory = nullptr;
  SUCCEEDS(hsa_amd_memory_pool_allocate(pool, 8192, 0, &memory));
  auto info_at = [](void* address) {
    hsa_amd_pointer_info_t info{};
    info.size = sizeof info;
    EXPECT_EQ(hsa_amd_pointer_info(address, &info, nullptr, nullptr, nullptr), HSA_STATUS_SUCCESS);
    return info;
  };
  EXPECT_EQ(info_at(static_cast<char*>(memory) + 8191).agentBaseAddress, memory);
  EXPECT_EQ(info_at(memory).agentOwner.handle, gpu_.handle);
  hsa_amd_ipc_memory_t handle{};
  void* attached = nullptr;
  SUCCEEDS(hsa_amd_ipc_memory_create(memory, 8192, &handle));
  SUCCEEDS(hsa_amd_ipc_memory_attach(&handle, 8192, 0, nullptr, &attached));
  EXPECT_EQ(attached, memory);
  SUCCEEDS(hsa_amd_ipc_memory_detach(attached));
  SUCCEEDS(hsa_amd_memory_pool_free(memory));
  EXPECT_EQ(info_at(memory).type, HSA_EXT_POINTER_TYPE_UNKNOWN);
  EXPECT_NE(hsa_amd_ipc_memory_create(memory, 8192, &handle), HSA_STATUS_SUCCESS);
  EXPECT_EQ(hsa_amd_memory_pool_free(memory), HSA_STATUS_ERROR_INVALID_ALLOCATION);
  EXPECT_EQ(hsa_amd_memory_pool_allocate(pool, size_t{1} << 40, 0, &memory),
            HSA_STATUS_ERROR_OUT_OF_RESOURCES);
}

TEST_F(Hsa, a_call_fails_on_demand_and_then_works_again) {
  const uint64_t calls = standin_hsa_calls("hsa_signal_create");
  standin_hsa_fail("hsa_signal_create", 2, HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  hsa_signal_t signal{};
  EXPECT_EQ(hsa_signal_create(0, 0, nullptr, &signal), HSA_STATUS_SUCCESS);
  hsa_signal_destroy(signal);
  EXPECT_EQ(hsa_signal_create(0, 0, nullptr, &signal), HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  EXPECT_EQ(hsa_signal_create(0, 0, nullptr, &signal), HSA_STATUS_SUCCESS);
  hsa_signal_destroy(signal);
  EXPECT_EQ(standin_hsa_calls("hsa_signal_create"), calls + 3);
}

}  // namespace
}  // namespace standin_hsa_test
