// Accounts a device's time to its queues. Queues that run at the same time divide it equally; while a held
// queue still has something on the device, see overruns.h.
#pragma once

#include <utility>

#include "sched/core/queue_record.h"

namespace xsched::sched {

inline bool IsGift(Charge charge) { return charge >= Charge::kGift; }
inline bool IsService(Charge charge) { return charge >= Charge::kService; }

// Brings the device's clock of service up to date.
inline void Account(DeviceRecord& device, TimePoint now) {
  if (now <= device.accounted_at) return;
  const Duration passed = now - device.accounted_at;
  // Mostly it is one that runs, and a division takes longer than all else here.
  if (device.sharing != 0) device.service_clock += device.sharing == 1 ? passed : passed / device.sharing;
  device.accounted_at = now;
}
// Does it run by the policy's choice now?
inline void SetChosen(QueueRecord& queue, bool chosen, TimePoint now) {
  if (std::exchange(queue.was_chosen, chosen) == chosen) return;
  if (!chosen) {
    queue.process->chosen.Remove(now);
    queue.process->tenant->chosen.Remove(now);
    return;
  }
  queue.chosen_since = now;
  queue.process->chosen.Add(now);
  queue.process->tenant->chosen.Add(now);
}
void ChangeCharge(QueueRecord& queue, Charge charge, TimePoint now);
inline void SetCharge(QueueRecord& queue, Charge charge, TimePoint now) {
  if (queue.charge != charge) ChangeCharge(queue, charge, now);
}

// The device time that the queue has received. REQUIRES: Account was called for its device.
inline Duration ServiceOf(const QueueRecord& queue) {
  if (!IsService(queue.charge)) return queue.service;
  return queue.service + (queue.device->service_clock - queue.service_mark);
}
// The part of it that the policy decided. REQUIRES: as above.
inline Duration ChosenServiceOf(const QueueRecord& queue) {
  return (IsGift(queue.charge) ? queue.service : ServiceOf(queue)) - queue.gifts;
}
// The part of it that its process and its tenant have received. REQUIRES: as above.
inline Duration ServiceForProcess(const QueueRecord& queue) {
  const Duration lent = queue.charge == Charge::kLent ? ServiceOf(queue) - queue.service : Duration::zero();
  return ChosenServiceOf(queue) + queue.lent + lent;
}
inline Received ReceivedBy(const QueueRecord& queue) { return {ServiceForProcess(queue), ServiceOf(queue)}; }

}  // namespace xsched::sched
