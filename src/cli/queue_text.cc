#include "cli/queue_text.h"

#include <fmt/format.h>
#include <pwd.h>

#include <charconv>

#include "base/pci_address.h"
#include "cli/hold_reasons.h"
#include "cli/platform.h"
#include "server/tenants/process_identity.h"
#include "server/tenants/tenant.h"

namespace xsched::cli {

std::string StateText(const ipc::QueueInfo& queue) {
  if (queue.wait_reason == ipc::kWaitProcessStopped) return "stopped";
  if (queue.wait_reason == ipc::kWaitProcessSilent) return "silent";
  if (queue.wait_reason == ipc::kWaitNoAccess) return "no access";
  if (queue.absent != 0) return "suspended";
  if (queue.stalled != 0) return "stalled";
  if (queue.state == static_cast<uint32_t>(sched::QueueState::kIdle)) return "idle";
  return queue.run != 0 ? "run" : "held";
}

namespace {

std::string BecauseOfText(const HoldReason& reason, const ipc::QueueInfo& queue) {
  if (*reason.preposition == '\0') return reason.phrase;
  if (queue.waits_for_queue != 0) {
    return fmt::format("{} {} queue {} ({}, pid {})", reason.phrase, reason.preposition,
                       queue.waits_for_queue, queue.waits_for_name, queue.waits_for_pid);
  }
  if (queue.waits_for_pid != ipc::kWaitsForAnotherUser) return reason.phrase;
  return fmt::format("{} {} another user's queue", reason.phrase, reason.preposition);
}

nlohmann::json TextOrNull(const char* text) {
  return *text == '\0' ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace

std::string WhyText(const ipc::QueueInfo& queue) {
  if (queue.wait_reason == ipc::kWaitProcessStopped) return "process stopped";
  if (queue.wait_reason == ipc::kWaitProcessSilent) return "process does not answer";
  if (queue.wait_reason == ipc::kWaitNoAccess)
    return "runs unscheduled: it did not show access to the device";
  auto since = [&queue](const std::string& what) {
    return fmt::format("{} since {:.1f} s", what, static_cast<double>(queue.waiting_since_ns) / 1e9);
  };
  const auto reason = static_cast<sched::WaitReason>(queue.wait_reason);
  if (reason == sched::WaitReason::kStalled) return since("stalled");
  const HoldReason* known = FindHoldReason(reason);
  if (known == nullptr) return "";
  std::string what = BecauseOfText(*known, queue);
  if (reason == sched::WaitReason::kAbsent) return what;
  if (reason != sched::WaitReason::kLimited) return since(what);
  return fmt::format("{} until {:.1f} ms from now", what, static_cast<double>(queue.limited_for_ns) / 1e6);
}

std::string PlatformText(uint32_t platform) {
  const Platform* known = FindPlatform(platform);
  return known == nullptr ? fmt::format("platform {}", platform) : known->name;
}

std::string DeviceNumberText(uint64_t device) {
  if (!HasPciAddress(device)) return fmt::format("{:x}", device);
  const uint32_t part = NumberOfPart(device);
  return TextOfPciAddress(device).text + (part == 0 ? "" : fmt::format("/{}", part));
}

std::string MemoryText(const ipc::QueueInfo& queue) {
  return MemoryText(queue.memory_used, queue.memory_limit);
}

std::string MemoryText(uint64_t used, uint64_t limit) {
  if (limit == 0) return "";
  constexpr double kGiB = 1 << 30;
  return fmt::format("{:.1f} of {:.1f} GiB", static_cast<double>(used) / kGiB,
                     static_cast<double>(limit) / kGiB);
}

std::string UserText(uint32_t uid) {
  const passwd* user = getpwuid(uid);
  return user == nullptr ? std::to_string(uid) : user->pw_name;
}

std::string IdentityText(const ipc::QueueInfo& queue) {
  std::string text;
  const auto add = [&text](const char* what, const std::string& name) {
    if (!name.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, name);
  };
  add("job", queue.slurm_job);
  add("pod", queue.pod);
  add("container", std::string(queue.container).substr(0, server::kShownContainerDigits));
  return text;
}

std::string TenantText(const std::string& tenant) {
  const std::string prefix = server::kUserTenantPrefix;
  uint32_t uid = 0;
  const char* const end = tenant.data() + tenant.size();
  if (!tenant.starts_with(prefix)) return tenant;
  const auto parsed = std::from_chars(tenant.data() + prefix.size(), end, uid);
  return parsed.ec == std::errc() && parsed.ptr == end ? fmt::format("user {}", UserText(uid)) : tenant;
}

nlohmann::json ToJson(const ipc::QueueInfo& queue) {
  nlohmann::json all = {
      {"container", TextOrNull(queue.container)},
      {"pod", TextOrNull(queue.pod)},
      {"job", TextOrNull(queue.slurm_job)},
      {"user", UserText(queue.uid)},
      {"platform", PlatformText(queue.platform)},
      {"state", StateText(queue)},
      {"why", WhyText(queue)},
      {"waits_for", queue.waits_for_queue != 0 ? nlohmann::json(queue.waits_for_queue) : nlohmann::json()}};
  ipc::ForEachShown(queue, [&all](const char* name, const auto& value) { all[name] = value; });
  return all;
}

}  // namespace xsched::cli
