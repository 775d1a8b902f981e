#pragma once

#include <grpcpp/server.h>

#include <chrono>
#include <memory>

namespace xsched::kubernetes {

// Ends the server, if there is one. Calls that have begun may take one second more.
inline void Stop(std::unique_ptr<grpc::Server>& server) {
  if (server == nullptr) return;
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  server->Wait();
  server.reset();
}

}  // namespace xsched::kubernetes
