// Bounds on what clients can make the server hold.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace xsched::server {

inline constexpr size_t kMaxConnections = 16384;
inline constexpr size_t kMaxConnectionsOfUser = 4096;
inline constexpr Duration kHelloTimeout = std::chrono::seconds(5);

}  // namespace xsched::server
