// Sockets by which the kubelet and the agent reach each other.
#pragma once

#include <string>

namespace xsched::kubernetes {

// Somebody accepts connections there. Throws std::runtime_error: the path is too long for a socket.
bool IsServedAt(const std::string& path);

}  // namespace xsched::kubernetes
