#include "queue.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "agent.h"
#include "clock.h"
#include "entry.h"
#include "kernels.h"
#include "signals.h"
#include "standin_hsa.h"

namespace standin_hsa {
namespace {

std::atomic<uint64_t> queues_made{0};
std::atomic<uint64_t> queues_now{0};
std::atomic<uint64_t> last_queue{0};

uint16_t TypeOf(const Packet& packet) {
  uint16_t header =
      std::atomic_ref<uint16_t>(const_cast<uint16_t&>(packet.header)).load(std::memory_order_acquire);
  return (header >> HSA_PACKET_HEADER_TYPE) & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
}

}  // namespace

Queue* Queue::Create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type) {
  auto* queue = new (std::nothrow) Queue;
  auto* ring = static_cast<Packet*>(std::aligned_alloc(4096, std::max<size_t>(size * sizeof(Packet), 4096)));
  if (queue == nullptr || ring == nullptr ||
      !queue->kfd_.Create(IndexOf(agent), ring, size * sizeof(Packet)) ||
      hsa_signal_create(0, 0, nullptr, &queue->doorbell_) != HSA_STATUS_SUCCESS) {
    std::free(ring);
    delete queue;
    return nullptr;
  }
  std::memset(static_cast<void*>(ring), 0, size * sizeof(Packet));
  for (uint32_t i = 0; i < size; ++i) ring[i].header = HSA_PACKET_TYPE_INVALID << HSA_PACKET_HEADER_TYPE;
  queue->agent_ = agent;
  queue->number_ = queues_made.fetch_add(1) + 1;
  queues_now.fetch_add(1);
  hsa_queue_t& abi = queue->abi_.hsa_queue;
  abi.type = type;
  abi.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
  abi.base_address = ring;
  abi.doorbell_signal = queue->doorbell_;
  abi.size = size;
  abi.id = queue->number_;
  queue->worker_ = std::thread([queue] { queue->Run(); });
  return queue;
}

Queue::~Queue() {
  {
    std::lock_guard guard(Signals().lock);
    closed_ = true;
  }
  Signals().changed.notify_all();
  kfd_.Destroy();
  if (worker_.joinable()) {
    worker_.join();
    queues_now.fetch_sub(1);
  }
  if (doorbell_.handle != 0) hsa_signal_destroy(doorbell_);
  std::free(abi_.hsa_queue.base_address);
}

void Queue::Run() {
  auto* ring = static_cast<Packet*>(abi_.hsa_queue.base_address);
  for (;;) {
    const uint64_t index = read_index();
    Packet& packet = ring[index % abi_.hsa_queue.size];
    bool closed = false;
    Await([&] {
      closed = closed_;
      return closed || TypeOf(packet) != HSA_PACKET_TYPE_INVALID;
    });
    if (closed || !kfd_.AwaitActive() || !Process(packet)) return;
  }
}

bool Queue::Process(Packet& packet) {
  hsa_signal_t completion = packet.dispatch.completion_signal;  // at the same place in every packet
  const uint64_t begun = Now();
  switch (TypeOf(packet)) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      last_queue.store(number_, std::memory_order_relaxed);
      RunKernel(packet.dispatch, IndexOf(agent_), number_);
      break;
    case HSA_PACKET_TYPE_BARRIER_AND:
      if (!AwaitSignals(packet.barrier_and.dep_signal, true)) return false;
      break;
    case HSA_PACKET_TYPE_BARRIER_OR:
      if (!AwaitSignals(packet.barrier_or.dep_signal, false)) return false;
      break;
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      if (packet.barrier_value.header.AmdFormat == HSA_AMD_PACKET_TYPE_BARRIER_VALUE &&
          !AwaitValue(packet.barrier_value)) {
        return false;
      }
      break;
    default:
      break;
  }
  std::atomic_ref<uint16_t>(packet.header)
      .store(HSA_PACKET_TYPE_INVALID << HSA_PACKET_HEADER_TYPE, std::memory_order_release);
  Index(abi_.read_dispatch_id).fetch_add(1, std::memory_order_acq_rel);
  Complete(completion, begun, Now());
  return true;
}

bool Queue::AwaitSignals(const hsa_signal_t (&signals)[5], bool all) const {
  bool pending[5];
  int count = 0;
  for (int i = 0; i < 5; ++i) count += pending[i] = signals[i].handle != 0;
  if (count == 0) return true;
  // A signal that was seen at 0 counts, whatever becomes of it.
  bool closed = false;
  Await([&] {
    for (int i = 0; i < 5; ++i) {
      if (!pending[i] || Load(signals[i]) != 0) continue;
      pending[i] = false;
      --count;
      if (!all) count = 0;
    }
    closed = closed_;
    return closed || count == 0;
  });
  return !closed;
}

bool Queue::AwaitValue(const hsa_amd_barrier_value_packet_t& barrier) const {
  if (barrier.signal.handle == 0) return true;
  bool closed = false;
  AwaitByLooking([&] {
    closed = closed_;
    return closed || Holds(static_cast<hsa_signal_condition_t>(barrier.cond),
                           Load(barrier.signal) & barrier.mask, barrier.value);
  });
  return !closed;
}

}  // namespace standin_hsa

using standin_hsa::Queue;

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*)(hsa_status_t, hsa_queue_t*, void*), void*, uint32_t, uint32_t,
                              hsa_queue_t** created) {
  HSA_ENTRY();
  if (!standin_hsa::IsGpu(agent)) return HSA_STATUS_ERROR_INVALID_AGENT;
  if (size == 0 || (size & (size - 1)) != 0) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  Queue* queue = Queue::Create(agent, size, type);
  if (queue == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  *created = queue->abi();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_queue_destroy(hsa_queue_t* queue) {
  HSA_ENTRY();
  delete Queue::From(queue);
  return HSA_STATUS_SUCCESS;
}
uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t* queue, uint64_t count) {
  return Queue::From(queue)->AddToWriteIndex(count);
}
uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t* queue) {
  return Queue::From(queue)->read_index();
}
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue) {
  return Queue::From(queue)->read_index();
}
uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t* queue) {
  return Queue::From(queue)->write_index();
}
uint64_t hsa_queue_load_write_index_scacquire(const hsa_queue_t* queue) {
  return Queue::From(queue)->write_index();
}
hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t priority) {
  HSA_ENTRY();
  constexpr uint32_t kOfDriver[] = {0, 7, 15};
  return Queue::From(queue)->kfd().SetPriority(kOfDriver[priority]) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR;
}
hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t*, uint32_t, const uint32_t*) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t*, int) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_profiling_async_copy_enable(bool) {
  HSA_ENTRY();
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t, hsa_signal_t signal,
                                                 hsa_amd_profiling_dispatch_time_t* time) {
  HSA_ENTRY();
  *time = {standin_hsa::From(signal)->start_ts, standin_hsa::From(signal)->end_ts};
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal,
                                                   hsa_amd_profiling_async_copy_time_t* time) {
  HSA_ENTRY();
  *time = {standin_hsa::From(signal)->start_ts, standin_hsa::From(signal)->end_ts};
  return HSA_STATUS_SUCCESS;
}

uint64_t standin_hsa_queues() { return standin_hsa::queues_now.load(); }
uint64_t standin_hsa_last_queue() { return standin_hsa::last_queue.load(); }
