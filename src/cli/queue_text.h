// A queue in words and in JSON, as list and top show it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ipc/messages.h"

namespace xsched::cli {

// "run", "held", "idle", "stalled", "suspended".
std::string StateText(const ipc::QueueInfo& queue);
std::string PlatformText(uint32_t platform);
std::string UserText(uint32_t uid);
nlohmann::json ToJson(const ipc::QueueInfo& queue);

}  // namespace xsched::cli
