#include "shim/opencl/chosen_queue.h"

#include "base/array.h"
#include "base/fork_handler.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "shim/opencl/queues.h"
#include "xsched/opencl/cmdq.h"

namespace xsched::opencl {
namespace {

constexpr int32_t kNone = -1;

struct Chosen {
  int32_t index;  // kNone: deleted, while a call still uses it
  cl_command_queue queue;
  const Functions* next;
  int users;  // calls that are about to retain it
};

// The driver is never called under this lock.
constinit Mutex<LockRank::kOpenClRecords> mutex;
constinit int32_t current GUARDED_BY(mutex) = kNone;
constinit NoDestroy<Array<Chosen>> chosen GUARDED_BY(mutex);

Chosen* Find(int32_t index) REQUIRES(mutex) {
  for (Chosen& entry : *chosen) {
    if (index != kNone && entry.index == index) return &entry;
  }
  return nullptr;
}

// Forgets it if it is deleted and unused. Returns it, to be released without the lock; null: it is still
// needed.
cl_command_queue ForgetIfUnused(Chosen* entry) REQUIRES(mutex) {
  if (entry->index != kNone || entry->users != 0) return nullptr;
  cl_command_queue queue = entry->queue;
  *entry = chosen->back();
  chosen->Pop();
  return queue;
}

void Release(const Functions& next, cl_command_queue queue) {
  preempt::ReentrancyGuard guard;
  if (queue != nullptr) next.clReleaseCommandQueue(queue);
}

// The call has retained `queue`, or failed to.
void EndUse(const Functions& next, cl_command_queue queue) {
  cl_command_queue unused = nullptr;
  {
    MutexLock lock(mutex);
    for (Chosen& entry : *chosen) {
      if (entry.queue != queue) continue;
      --entry.users;
      unused = ForgetIfUnused(&entry);
      break;
    }
  }
  Release(next, unused);
}

}  // namespace

cl_command_queue ChosenQueue(const Call& call) {
  if (!call.is_the_programs()) return nullptr;
  cl_command_queue queue;
  const Functions* next;
  {
    MutexLock lock(mutex);
    Chosen* entry = Find(current);
    if (entry == nullptr) return nullptr;
    ++entry->users;
    queue = entry->queue;
    next = entry->next;
  }
  {
    QueueRetention retention(call, queue);
    retention.Finish(next->clRetainCommandQueue(queue) == CL_SUCCESS);
  }
  EndUse(*next, queue);
  return queue;
}

void KeepChosenQueue(const Functions& next, cl_command_queue queue) {
  preempt::ReentrancyGuard guard;
  {
    MutexLock lock(mutex);
    if (current == kNone || Find(current) != nullptr) return;
    for (const Chosen& entry : *chosen) {
      if (entry.queue == queue) return;
    }
    if (!chosen->Push({current, queue, &next, 1})) return;
  }
  next.clRetainCommandQueue(queue);
  EndUse(next, queue);
}

}  // namespace xsched::opencl

using namespace xsched::opencl;

XResult SetOverrideCommandQueue(int32_t queue_idx) {
  if (queue_idx < 0) return kXSchedErrorInvalidValue;
  static constinit xsched::ForkHandler handler = {[] { mutex.ResetAfterFork(); }};
  handler.Install();
  xsched::MutexLock lock(mutex);
  current = queue_idx;
  return kXSchedSuccess;
}

XResult UnsetOverrideCommandQueue() {
  xsched::MutexLock lock(mutex);
  current = kNone;
  return kXSchedSuccess;
}

XResult GetOverrideCommandQueue(int32_t queue_idx, cl_command_queue* cmdq) {
  if (cmdq == nullptr || queue_idx < 0) return kXSchedErrorInvalidValue;
  xsched::MutexLock lock(mutex);
  const Chosen* entry = Find(queue_idx);
  if (entry == nullptr) return kXSchedErrorNotFound;
  *cmdq = entry->queue;
  return kXSchedSuccess;
}

XResult DeleteOverrideCommandQueue(int32_t queue_idx) {
  cl_command_queue unused;
  const Functions* next;
  {
    xsched::MutexLock lock(mutex);
    Chosen* entry = Find(queue_idx);
    if (entry == nullptr) return kXSchedErrorNotFound;
    entry->index = kNone;
    next = entry->next;
    unused = ForgetIfUnused(entry);
  }
  Release(*next, unused);
  return kXSchedSuccess;
}
