// A queue as text and as JSON, for list and top.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ipc/messages.h"

namespace xsched::cli {

// "run", "held", "idle", "stalled", "suspended", "stopped", "silent".
std::string StateText(const ipc::QueueInfo& queue);
// Why a queue with work does not run: "held for queue 7 (serve.py, pid 812) since 1.2 s". "": it runs, or has
// no work.
std::string WhyText(const ipc::QueueInfo& queue);
std::string PlatformText(uint32_t platform);
// "0000:3b:00.0", "0000:3b:00.0/1" of a part of a GPU; the number in hexadecimal, if that is no PCI address.
std::string DeviceNumberText(uint64_t device);
// How much memory its process has taken of its device, and may take: "1.2 of 20.0 GiB". "": it has no limit.
std::string MemoryText(const ipc::QueueInfo& queue);
std::string MemoryText(uint64_t used, uint64_t limit);
std::string UserText(uint32_t uid);
// What its process is in, as far as the kernel says it: "job 1234", "container 1f3a5b6c7d8e", of which the
// engine also shows these first 12 digits, or "pod UID, container 1f3a5b6c7d8e". "": in none of them.
std::string IdentityText(const ipc::QueueInfo& queue);
// A name of the tenants' file, or that of the user who is a tenant ("uid:1000").
std::string TenantText(const std::string& tenant);
nlohmann::json ToJson(const ipc::QueueInfo& queue);

}  // namespace xsched::cli
