// A KFD for tests. It accepts and refuses the same requests about queues as AMD's kernel driver, and records
// them. It uses the kernel's own header, and not the code under test. Not thread-safe.
#pragma once

#include <errno.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace xsched::hip::kfd::testing {

class Kfd {
 public:
  struct Queue {
    kfd_ioctl_create_queue_args made;
    kfd_ioctl_update_queue_args now;
    bool active() const { return (now.queue_percentage & 0xff) != 0; }
  };

  // As ioctl(2).
  int Ioctl(unsigned long request, void* argument) {
    const unsigned number = _IOC_NR(request);
    if (auto fault = faults_.find(number); fault != faults_.end() && --fault->second.calls_until < 0) {
      const Fault ordered = fault->second;
      if (--fault->second.count == 0) faults_.erase(fault);
      if (ordered.takes_effect) Perform(number, argument);
      errno = ordered.error;
      Record("%s fails", Name(number));
      return -1;
    }
    return Perform(number, argument);
  }

  // `count` requests of this kind (AMDKFD_IOC_…) fail with `error`, after `skip` that do not.
  void Fail(unsigned long request, int error, int count = 1, int skip = 0) {
    faults_[_IOC_NR(request)] = {skip, count, error, false};
  }
  // The next one takes effect, but reports `error`.
  void FailAfterwards(unsigned long request, int error) { faults_[_IOC_NR(request)] = {0, 1, error, true}; }
  void FailNoMore() { faults_.clear(); }

  // "create 1: gpu 2a, type 2", "update 1: 0 %, priority 7, ring 10000+1000", "destroy 1", "update fails"
  std::vector<std::string> TakeRecord() { return std::exchange(record_, {}); }
  const std::map<uint32_t, Queue>& queues() const { return queues_; }
  bool active(uint32_t queue) const { return queues_.at(queue).active(); }

  // Called when a queue was made, destroyed, activated or deactivated.
  std::function<void()> changed = [] {};

 private:
  struct Fault {
    int calls_until;
    int count;
    int error;
    bool takes_effect;
  };

  int Perform(unsigned number, void* argument) {
    switch (number) {
      case _IOC_NR(AMDKFD_IOC_CREATE_QUEUE):
        return Create(*static_cast<kfd_ioctl_create_queue_args*>(argument));
      case _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE):
        return Destroy(*static_cast<kfd_ioctl_destroy_queue_args*>(argument));
      case _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE):
        return Update(*static_cast<kfd_ioctl_update_queue_args*>(argument));
      default:
        return 0;  // all other requests of a runtime
    }
  }
  static const char* Name(unsigned number) {
    return number == _IOC_NR(AMDKFD_IOC_CREATE_QUEUE)    ? "create"
           : number == _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE) ? "destroy"
                                                         : "update";
  }
  template <typename... Arguments>
  void Record(const char* format, Arguments... arguments) {
    char line[160];
    std::snprintf(line, sizeof line, format, arguments...);
    record_.emplace_back(line);
  }
  static int Refuse(int error) {
    errno = error;
    return -1;
  }

  static bool IsValid(uint32_t percentage, uint32_t priority, uint64_t size) {
    return (percentage & 0xff) <= KFD_MAX_QUEUE_PERCENTAGE && priority <= KFD_MAX_QUEUE_PRIORITY &&
           (size & (size - 1)) == 0;
  }

  int Create(kfd_ioctl_create_queue_args& create) {
    if (!IsValid(create.queue_percentage, create.queue_priority, create.ring_size)) return Refuse(EINVAL);
    // The smallest free number, as in the kernel: numbers are reused.
    create.queue_id = 1;
    while (queues_.count(create.queue_id) != 0) ++create.queue_id;
    queues_[create.queue_id] = {create,
                                {create.ring_base_address, create.queue_id, create.ring_size,
                                 create.queue_percentage, create.queue_priority}};
    Record("create %u: gpu %x, type %u", create.queue_id, create.gpu_id, create.queue_type);
    changed();
    return 0;
  }
  int Destroy(const kfd_ioctl_destroy_queue_args& destroy) {
    if (queues_.erase(destroy.queue_id) == 0) return Refuse(EINVAL);
    Record("destroy %u", destroy.queue_id);
    changed();
    return 0;
  }
  int Update(const kfd_ioctl_update_queue_args& update) {
    if (!IsValid(update.queue_percentage, update.queue_priority, update.ring_size)) return Refuse(EINVAL);
    auto found = queues_.find(update.queue_id);
    if (found == queues_.end()) return Refuse(EFAULT);
    found->second.now = update;
    Record("update %u: %u %%, priority %u, ring %llx+%x", update.queue_id, update.queue_percentage,
           update.queue_priority, static_cast<unsigned long long>(update.ring_base_address),
           update.ring_size);
    changed();
    return 0;
  }

  std::map<uint32_t, Queue> queues_;
  std::map<unsigned, Fault> faults_;
  std::vector<std::string> record_;
};

}  // namespace xsched::hip::kfd::testing
