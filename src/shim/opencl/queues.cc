#include "shim/opencl/queues.h"

#include "base/fork_handler.h"
#include "base/no_destroy.h"
#include "hal/opencl/queue.h"
#include "shim/common/auto_queue.h"
#include "shim/opencl/chosen_queue.h"

namespace xsched::opencl {
namespace {

constinit NoDestroy<Records<QueueRecord>> records;

void InstallForkHandler() {
  static constinit ForkHandler handler = {[] { records->ResetAfterFork(); }};
  handler.Install();
}

cl_command_queue_properties PropertiesOf(const Functions& next, cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
  return properties;
}

bool IsInOrder(cl_command_queue_properties properties) {
  return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
}

// Forgets a queue with the same address whose end we did not see, for example because it was in a fork's
// parent; or this one, from before its release by the program.
void ForgetStale(cl_command_queue queue) {
  records->Forget(KeyOf(queue));
  preempt::ForgetQueue(kPlatformOpenCL, KeyOf(queue));
}

void MakeXQueue(const Functions& next, cl_command_queue queue) {
  HwQueueHandle hwq = 0;
  const XResult made = OclQueueRegister(&next, queue, &hwq);
  shim::CreateXQueue(made, hwq, "an OpenCL queue");
}

// Of a queue on which the program has one reference. False: it stays unscheduled.
bool Register(const Functions& next, cl_command_queue queue) {
  if (next.clGetCommandQueueInfo == nullptr) return false;
  const cl_command_queue_properties properties = PropertiesOf(next, queue);
  // A queue of the device: the host enqueues nothing there.
  if ((properties & CL_QUEUE_ON_DEVICE) != 0) return false;
  InstallForkHandler();
  ForgetStale(queue);
  QueueRecord* record = records->New();
  if (record == nullptr) return false;
  record->in_order.store(IsInOrder(properties), std::memory_order_relaxed);
  record->newest_event.Clear();
  if (!records->Insert(KeyOf(queue), record)) return false;
  if (preempt::AutoXQueueEnabled()) MakeXQueue(next, queue);
  return true;
}

}  // namespace

QueueRecord* FindRecord(cl_command_queue queue) { return records->Find(KeyOf(queue)); }

void QueueCreation::Finish(bool created, cl_command_queue queue) {
  if (created && Register(next_, queue)) KeepChosenQueue(next_, queue);
}

void QueueRetention::Finish(bool retained) {
  if (!retained || records->Retain(KeyOf(queue_))) return;
  // The program's last release took its XQueue, but something has kept the queue: a command in flight, whose
  // event names it, or the program's choice (chosen_queue.h).
  preempt::ReentrancyGuard guard;
  Register(next_, queue_);
}

QueueRelease::QueueRelease(const Call&, cl_command_queue queue) {
  if (records->Release(KeyOf(queue))) preempt::DestroyWhenDrained(kPlatformOpenCL, KeyOf(queue));
}

void QueueReconfiguration::Finish(bool) {
  QueueRecord* record = FindRecord(queue_);
  if (record == nullptr || next_.clGetCommandQueueInfo == nullptr) return;
  record->in_order.store(IsInOrder(PropertiesOf(next_, queue_)), std::memory_order_relaxed);
}

}  // namespace xsched::opencl
