#include "cli/queue_text.h"

#include <pwd.h>

#include "sched/core/scheduler.h"

namespace xsched::cli {

std::string StateText(const ipc::QueueInfo& queue) {
  if (queue.absent != 0) return "suspended";
  if (queue.stalled != 0) return "stalled";
  if (queue.state == static_cast<uint32_t>(sched::QueueState::kIdle)) return "idle";
  return queue.run != 0 ? "run" : "held";
}

std::string PlatformText(uint32_t platform) {
  switch (platform) {
    case kPlatformCUDA:
      return "CUDA";
    case kPlatformHIP:
      return "HIP";
    case kPlatformOpenCL:
      return "OpenCL";
    default:
      return "software";
  }
}

std::string UserText(uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user == nullptr ? std::to_string(uid) : user->pw_name;
}

nlohmann::json ToJson(const ipc::QueueInfo& queue) {
  return {{"queue", queue.queue_id},
          {"client", queue.client_id},
          {"process", queue.name},
          {"pid", queue.pid},
          {"user", UserText(queue.uid)},
          {"platform", PlatformText(queue.platform)},
          {"device", queue.device_name},
          {"device_id", queue.device},
          {"state", StateText(queue)},
          {"level", queue.level},
          {"tracked", queue.tracked != 0},
          {"gated", queue.gated != 0},
          {"priority", queue.hints.priority},
          {"utilization", queue.hints.utilization},
          {"deadline_us", queue.hints.deadline_us},
          {"laxity_us", queue.hints.laxity_us},
          {"threshold", queue.threshold},
          {"batch_size", queue.batch_size},
          {"submitted", queue.submitted},
          {"retired", queue.retired},
          {"service_ns", queue.service_ns},
          {"waiting_ns", queue.waiting_ns},
          {"holds", queue.holds},
          {"incidents", queue.incidents}};
}

}  // namespace xsched::cli
