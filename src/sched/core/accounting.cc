#include "sched/core/accounting.h"

#include <algorithm>

namespace xsched::sched {

void ChangeCharge(QueueRecord& queue, Charge charge, TimePoint now) {
  DeviceRecord& device = *queue.device;
  Account(device, now);
  const Duration service = ServiceOf(queue);
  if (IsGift(queue.charge)) queue.gifts += service - queue.service;
  if (queue.charge == Charge::kLent) queue.lent += service - queue.service;
  queue.service = service;
  if (queue.charge == Charge::kWaiting) queue.waiting += now - queue.waiting_mark;
  if (charge == Charge::kWaiting) queue.stopped_at = std::min(queue.stopped_at, now);
  device.sharing += IsService(charge) - IsService(queue.charge);
  queue.charge = charge;
  queue.service_mark = device.service_clock;
  queue.waiting_mark = now;
}

}  // namespace xsched::sched
