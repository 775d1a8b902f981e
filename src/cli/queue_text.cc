#include "cli/queue_text.h"

#include <fmt/format.h>
#include <pwd.h>

#include "cli/platform.h"
#include "sched/core/scheduler.h"

namespace xsched::cli {

std::string StateText(const ipc::QueueInfo& queue) {
  if (queue.wait_reason == ipc::kWaitProcessStopped) return "stopped";
  if (queue.wait_reason == ipc::kWaitProcessSilent) return "silent";
  if (queue.absent != 0) return "suspended";
  if (queue.stalled != 0) return "stalled";
  if (queue.state == static_cast<uint32_t>(sched::QueueState::kIdle)) return "idle";
  return queue.run != 0 ? "run" : "held";
}

namespace {

std::string HolderText(const ipc::QueueInfo& queue) {
  if (queue.waits_for_queue != 0) {
    return fmt::format("held for queue {} ({}, pid {})", queue.waits_for_queue, queue.waits_for_name,
                       queue.waits_for_pid);
  }
  return queue.waits_for_pid == ipc::kWaitsForAnotherUser ? "held for another user's queue" : "held";
}

}  // namespace

std::string WhyText(const ipc::QueueInfo& queue) {
  if (queue.wait_reason == ipc::kWaitProcessStopped) return "process stopped";
  if (queue.wait_reason == ipc::kWaitProcessSilent) return "process does not answer";
  auto since = [&queue](const std::string& what) {
    return fmt::format("{} since {:.1f} s", what, static_cast<double>(queue.waiting_since_ns) / 1e9);
  };
  switch (static_cast<sched::WaitReason>(queue.wait_reason)) {
    case sched::WaitReason::kHeld:
      return since(HolderText(queue));
    case sched::WaitReason::kTurn:
      return since("waits for its turn");
    case sched::WaitReason::kOffDevice:
      return since("process off the device");
    case sched::WaitReason::kStalled:
      return since("stalled");
    case sched::WaitReason::kAbsent:
      return "suspended by the program";
    case sched::WaitReason::kLimited:
      return fmt::format("has used up its limit until {:.1f} ms from now",
                         static_cast<double>(queue.limited_for_ns) / 1e6);
    case sched::WaitReason::kNone:
      break;
  }
  return "";
}

std::string PlatformText(uint32_t platform) {
  const Platform* known = FindPlatform(platform);
  return known == nullptr ? fmt::format("platform {}", platform) : known->name;
}

std::string UserText(uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user == nullptr ? std::to_string(uid) : user->pw_name;
}

nlohmann::json ToJson(const ipc::QueueInfo& queue) {
  nlohmann::json all = {
      {"user", UserText(queue.uid)},
      {"platform", PlatformText(queue.platform)},
      {"state", StateText(queue)},
      {"why", WhyText(queue)},
      {"waits_for", queue.waits_for_queue != 0 ? nlohmann::json(queue.waits_for_queue) : nlohmann::json()}};
  ipc::ForEachShown(queue, [&all](const char* name, const auto& value) { all[name] = value; });
  return all;
}

}  // namespace xsched::cli
