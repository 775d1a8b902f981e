// A hardware queue: a ring of AQL packets that a thread of its own works through, in order and one at a time,
// whether or not they have a barrier bit: a device need not run packets together, and tests can be repeated.
// Its doorbell is a signal like any other.
#pragma once

#include <hsa/amd_hsa_queue.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <thread>

#include "kfd.h"

namespace standin_hsa {

union Packet {
  uint16_t header;
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier_and;
  hsa_barrier_or_packet_t barrier_or;
  hsa_amd_barrier_value_packet_t barrier_value;
};
static_assert(sizeof(Packet) == 64);

class Queue {
 public:
  // Null: no memory.
  static Queue* Create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type);
  // Drops what has not begun, waits for what runs.
  ~Queue();
  static Queue* From(const hsa_queue_t* queue) {
    return reinterpret_cast<Queue*>(const_cast<hsa_queue_t*>(queue));
  }

  hsa_queue_t* abi() { return &abi_.hsa_queue; }
  KfdQueue& kfd() { return kfd_; }
  uint64_t read_index() const { return Index(abi_.read_dispatch_id).load(std::memory_order_acquire); }
  uint64_t write_index() const { return Index(abi_.write_dispatch_id).load(std::memory_order_acquire); }
  uint64_t AddToWriteIndex(uint64_t count) {
    return Index(abi_.write_dispatch_id).fetch_add(count, std::memory_order_acq_rel);
  }

 private:
  Queue() = default;
  static std::atomic_ref<uint64_t> Index(const volatile uint64_t& index) {
    return std::atomic_ref<uint64_t>(const_cast<uint64_t&>(index));
  }
  void Run();
  // False: the queue goes before it is done.
  bool Process(Packet& packet);
  bool AwaitSignals(const hsa_signal_t (&signals)[5], bool all) const;
  bool AwaitValue(const hsa_amd_barrier_value_packet_t& barrier) const;

  amd_queue_t abi_ = {};  // first: what the program sees
  hsa_agent_t agent_ = {};
  hsa_signal_t doorbell_ = {};
  uint64_t number_ = 0;
  KfdQueue kfd_;
  bool closed_ = false;  // under Signals().lock
  std::thread worker_;
};

}  // namespace standin_hsa
