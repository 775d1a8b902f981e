// A tool's conversation with the server.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "ipc/client.h"

namespace xsched::cli {

class ServerSession {
 public:
  // Throws CommandError (kExitNoServer).
  ServerSession();

  std::vector<ipc::QueueInfo> List();
  ipc::Status Status();
  // Number of queues hinted. Throws CommandError with the server's reason.
  uint32_t SetHints(const ipc::SetHints& request);
  void SetPolicy(const ipc::SetPolicy& request);

  const std::string& path() const { return path_; }

 private:
  template <typename T>
  void Ask(const T& request);
  ipc::Packet Next();
  static void Check(const ipc::Reply& reply);

  UniqueFd socket_;
  std::string path_;
};

// Is a server there? Without an exception.
bool ServerAnswers();

}  // namespace xsched::cli
