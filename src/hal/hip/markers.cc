#include "hal/hip/markers.h"

#include "hal/contract.h"

namespace xsched::hip {

bool Markers::Append(const Functions& next, hipStream_t stream, uint64_t ticket) {
  MutexLock lock(mutex_);
  // Also reserve room to put the event back, so that none is lost.
  if (!waiting_.Reserve() || !spare_.Reserve(spare_.size() + waiting_.size() + 1)) return false;
  hipEvent_t event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.Pop();
  } else if (next.hipEventCreateWithFlags(&event, kHipEventDisableTiming) != hipSuccess) {
    return false;
  }
  // Under the lock, so that the list has the stream's order.
  const bool recorded = next.hipEventRecord(event, stream) == hipSuccess;
  const bool kept = recorded ? waiting_.Push(Marker{event, ticket}) : spare_.Push(event);
  return recorded && kept;
}

bool Markers::PopReached(const Functions& next, uint64_t* ticket) {
  if (!mutex_.TryLock()) return false;
  const bool reached = !waiting_.empty() && next.hipEventQuery(waiting_.front().event) != hipErrorNotReady;
  if (reached) *ticket = Pop();
  mutex_.Unlock();
  return reached;
}

bool Markers::PopAny(uint64_t* ticket) {
  MutexLock lock(mutex_);
  if (waiting_.empty()) return false;
  *ticket = Pop();
  return true;
}

uint64_t Markers::Pop() {
  const Marker marker = waiting_.front();
  waiting_.Pop();
  [[maybe_unused]] const bool kept = spare_.Push(marker.event);  // Append has reserved the room
  return marker.ticket;
}

bool Markers::AnyToPoll() {
  if (!mutex_.TryLock()) return false;
  const bool any = !waiting_.empty();
  mutex_.Unlock();
  return any;
}

void Markers::Poll(const Functions& next) {
  // The lock is not held during the notification, because the notified code may take other locks.
  for (uint64_t ticket; PopReached(next, &ticket);) HwQueueRetired(ticket);
}

void Markers::PutAway() {
  for (uint64_t ticket; PopAny(&ticket);) HwQueueRetired(ticket);
}

void Markers::Drop(const Functions& next) {
  MutexLock lock(mutex_);
  for (; !waiting_.empty(); waiting_.Pop()) {
    HwQueueRetired(waiting_.front().ticket);
    next.hipEventDestroy(waiting_.front().event);
  }
  for (hipEvent_t event : spare_) next.hipEventDestroy(event);
  spare_.Clear();
}

}  // namespace xsched::hip
