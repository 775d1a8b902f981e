#include "requests.h"

#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>

#include <cstdint>
#include <cstdio>

namespace standin_amdgpu {
namespace {

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string Config(uint32_t percentage, uint32_t priority, uint64_t ring, uint32_t size) {
  return Format("%u %%, priority %u, ring %llx+%x", percentage, priority,
                static_cast<unsigned long long>(ring), size);
}

// What was asked: the request and its queue, and the rest.
std::pair<std::string, std::string> Describe(unsigned number, const void* argument) {
  if (number == _IOC_NR(AMDKFD_IOC_CREATE_QUEUE)) {
    const auto& create = *static_cast<const kfd_ioctl_create_queue_args*>(argument);
    return {Format("create %u", create.queue_id),
            Format("gpu %x, type %u, ", create.gpu_id, create.queue_type) +
                Config(create.queue_percentage, create.queue_priority, create.ring_base_address,
                       create.ring_size)};
  }
  if (number == _IOC_NR(AMDKFD_IOC_DESTROY_QUEUE)) {
    return {Format("destroy %u", static_cast<const kfd_ioctl_destroy_queue_args*>(argument)->queue_id), ""};
  }
  const auto& update = *static_cast<const kfd_ioctl_update_queue_args*>(argument);
  return {Format("update %u", update.queue_id),
          Config(update.queue_percentage, update.queue_priority, update.ring_base_address, update.ring_size)};
}

}  // namespace

void Requests::Fail(unsigned number, int nth, int count, Fault fault) {
  orders_.erase(number);
  if (nth > 0) orders_[number] = {nth, count, fault};
}

Requests::Fault Requests::NextFault(unsigned number) {
  auto found = orders_.find(number);
  if (found == orders_.end() || --found->second.until > 0) return {};
  const Fault fault = found->second.fault;
  if (--found->second.count <= 0) orders_.erase(found);
  return fault;
}

void Requests::Record(unsigned number, const void* argument, int error) {
  const auto [what, how] = Describe(number, argument);
  lines_ += what;
  if (error != 0) {
    lines_ += Format(" fails: %d", error);
  }
  if (!how.empty()) lines_ += ": " + how;
  lines_ += "\n";
}

}  // namespace standin_amdgpu
