#include "shim/opencl/queues.h"

#include <atomic>
#include <new>

#include "base/log.h"
#include "base/no_destroy.h"
#include "base/pointer_map.h"
#include "preempt/launch.h"

namespace xsched::opencl {
namespace {

struct QueueRecord {
  std::atomic<int64_t> references;  // the program's
  bool in_order;
  const OclDriver* driver;
  QueueRecord* next_free;
};

constinit NoDestroy<PointerMap<QueueRecord>> records;
constinit Mutex free_mutex;
constinit QueueRecord* free_records = nullptr;

uint64_t KeyOf(cl_command_queue queue) { return reinterpret_cast<uint64_t>(queue); }

// Records are used again and never given back: a racing reader never meets foreign memory.
QueueRecord* NewRecord() {
  MutexLock lock(free_mutex);
  if (free_records == nullptr) return new (std::nothrow) QueueRecord{};
  QueueRecord* record = free_records;
  free_records = record->next_free;
  return record;
}

void RecycleRecord(QueueRecord* record) {
  MutexLock lock(free_mutex);
  record->next_free = free_records;
  free_records = record;
}

}  // namespace

void QueueCreated(cl_command_queue queue, const OclDriver* driver) {
  if (!preempt::AutoXQueueEnabled() || driver == nullptr) return;
  cl_command_queue_properties properties = 0;
  {
    preempt::ReentrancyGuard guard;
    driver->clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, nullptr);
  }
  // Kernels enqueue on these, on the device; the host has no part in it.
  if ((properties & CL_QUEUE_ON_DEVICE) != 0) return;
  QueueRecord* record = NewRecord();
  if (record == nullptr) return;
  record->references.store(1, std::memory_order_relaxed);
  record->in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  record->driver = driver;
  HwQueueHandle hwq = 0;
  XResult result = OclQueueCreateOn(driver, queue, &hwq);
  if (result == kXSchedSuccess) result = preempt::AutoXQueueCreate(hwq);
  if (result != kXSchedSuccess) {
    XSCHED_INFO("an OpenCL queue runs unscheduled (error %d)", result);
    preempt::DestroyWhenDrained(kPlatformOpenCL, KeyOf(queue));
    RecycleRecord(record);
    return;
  }
  if (!records->Insert(KeyOf(queue), record)) RecycleRecord(record);
}

void QueueRetained(cl_command_queue queue) {
  if (QueueRecord* record = records->Find(KeyOf(queue))) record->references.fetch_add(1, std::memory_order_relaxed);
}

void QueueReleased(cl_command_queue queue) {
  QueueRecord* record = records->Find(KeyOf(queue));
  if (record == nullptr || record->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  records->Remove(KeyOf(queue));
  RecycleRecord(record);
  preempt::DestroyWhenDrained(kPlatformOpenCL, KeyOf(queue));
}

bool IsInOrder(cl_command_queue queue) {
  QueueRecord* record = records->Find(KeyOf(queue));
  return record != nullptr && record->in_order;
}

const OclDriver* DriverOfQueue(cl_command_queue queue) {
  QueueRecord* record = records->Find(KeyOf(queue));
  return record == nullptr ? nullptr : record->driver;
}

}  // namespace xsched::opencl
