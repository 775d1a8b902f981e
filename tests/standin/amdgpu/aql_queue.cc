#include "aql_queue.h"

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <algorithm>

#include "clock.h"
#include "kernels.h"

namespace standin_amdgpu {

union Packet {
  uint16_t header;
  hsa_kernel_dispatch_packet_t dispatch;
  hsa_barrier_and_packet_t barrier_and;
  hsa_barrier_or_packet_t barrier_or;
  hsa_amd_barrier_value_packet_t barrier_value;
};
static_assert(sizeof(Packet) == 64);

namespace {

amd_signal_t* From(hsa_signal_t signal) { return reinterpret_cast<amd_signal_t*>(signal.handle); }

int64_t Load(hsa_signal_t signal) {
  return std::atomic_ref(const_cast<int64_t&>(From(signal)->value)).load(std::memory_order_acquire);
}

uint16_t TypeOf(Packet& packet) {
  const uint16_t header = std::atomic_ref(packet.header).load(std::memory_order_acquire);
  return header >> HSA_PACKET_HEADER_TYPE & ((1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
}

bool IsDone(hsa_signal_t signal) { return signal.handle == 0 || Load(signal) == 0; }
bool IsSetAndDone(hsa_signal_t signal) { return signal.handle != 0 && Load(signal) == 0; }
bool IsNone(hsa_signal_t signal) { return signal.handle == 0; }

bool Holds(const hsa_amd_barrier_value_packet_t& barrier) {
  if (barrier.signal.handle == 0) return true;
  const int64_t value = Load(barrier.signal) & barrier.mask;
  switch (barrier.cond) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == barrier.value;
    case HSA_SIGNAL_CONDITION_NE:
      return value != barrier.value;
    case HSA_SIGNAL_CONDITION_LT:
      return value < barrier.value;
    default:
      return value >= barrier.value;
  }
}

}  // namespace

bool AqlQueue::Advance(std::unique_lock<std::mutex>& lock) {
  const uint64_t index = read_pointer().load(std::memory_order_acquire);
  // The doorbell has the index of the last packet; before the first ring, -1.
  if (static_cast<int64_t>(doorbell()) < static_cast<int64_t>(index)) return false;
  Packet& packet = ring<Packet>()[index % (made().ring_size / sizeof(Packet))];
  if (TypeOf(packet) == HSA_PACKET_TYPE_INVALID) return false;
  if (begun_ == 0) begun_ = GpuClock();
  const State state = Process(packet, lock);
  if (state == State::kDone) Complete(packet);
  return state == State::kDone || wave_.runs();
}

AqlQueue::State AqlQueue::Process(Packet& packet, std::unique_lock<std::mutex>& lock) {
  const auto done_if = [](bool condition) { return condition ? State::kDone : State::kWaits; };
  switch (TypeOf(packet)) {
    case HSA_PACKET_TYPE_KERNEL_DISPATCH:
      return Dispatch(packet, lock);
    case HSA_PACKET_TYPE_BARRIER_AND:
      return done_if(std::ranges::all_of(packet.barrier_and.dep_signal, IsDone));
    case HSA_PACKET_TYPE_BARRIER_OR:
      return done_if(std::ranges::any_of(packet.barrier_or.dep_signal, IsSetAndDone) ||
                     std::ranges::all_of(packet.barrier_or.dep_signal, IsNone));
    case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
      return done_if(packet.barrier_value.header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE ||
                     Holds(packet.barrier_value));
    default:
      return State::kDone;
  }
}

AqlQueue::State AqlQueue::Dispatch(Packet& packet, std::unique_lock<std::mutex>& lock) {
  const hsa_kernel_dispatch_packet_t& dispatch = packet.dispatch;
  if (wave_.runs()) return wave_.Step() ? State::kWaits : State::kDone;
  const Kernel kernel = BeginKernel(dispatch.kernel_object);
  if (kernel.step != nullptr) {
    wave_.Begin(kernel.step, dispatch.kernarg_address);
    return State::kWaits;
  }
  if (kernel.function == nullptr) return State::kDone;
  lock.unlock();
  kernel.function(dispatch.kernarg_address, &dispatch);
  lock.lock();
  return AwaitActive(lock) ? State::kDone : State::kEnds;
}

void AqlQueue::Complete(Packet& packet) {
  const hsa_signal_t completion = packet.dispatch.completion_signal;  // at the same place in every packet
  std::atomic_ref(packet.header)
      .store(HSA_PACKET_TYPE_INVALID << HSA_PACKET_HEADER_TYPE, std::memory_order_release);
  const uint64_t begun = begun_;
  begun_ = 0;
  read_pointer().fetch_add(1, std::memory_order_acq_rel);
  if (completion.handle == 0) return;
  amd_signal_t* signal = From(completion);
  signal->start_ts = begun;
  signal->end_ts = GpuClock();
  // The signal may be gone when its value is 0.
  auto* mailbox = reinterpret_cast<std::atomic<uint64_t>*>(signal->event_mailbox_ptr);
  const uint32_t event = signal->event_id;
  std::atomic_ref(const_cast<int64_t&>(signal->value)).fetch_sub(1, std::memory_order_acq_rel);
  if (mailbox == nullptr) return;
  mailbox->store(event, std::memory_order_release);
  events().Interrupt(event);
}

}  // namespace standin_amdgpu
