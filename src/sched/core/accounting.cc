#include "sched/core/accounting.h"

#include <algorithm>
#include <utility>

namespace xsched::sched {

void ChangeCharge(QueueRecord& queue, Charge charge, TimePoint now) {
  DeviceRecord& device = *queue.device;
  Account(device, now);
  const Duration service = ServiceOf(queue);
  if (queue.charge == Charge::kGift) queue.gifts += service - queue.service;
  queue.service = service;
  if (queue.charge == Charge::kWaiting) queue.waiting += now - queue.waiting_mark;
  if (charge == Charge::kWaiting) queue.stopped_at = std::min(queue.stopped_at, now);
  device.sharing += IsService(charge) - IsService(queue.charge);
  queue.charge = charge;
  queue.service_mark = device.service_clock;
  queue.waiting_mark = now;
}

void EndOverrun(QueueRecord& queue, TimePoint now) {
  if (std::exchange(queue.overruns, false)) SetCharge(queue, Charge::kWaiting, now);
}

}  // namespace xsched::sched
