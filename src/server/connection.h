// One client's connection: its socket, and who the client is. The server trusts nothing that comes from it.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "sched/core/types.h"
#include "server/access.h"
#include "server/quotas.h"

namespace xsched::server {

struct Connection {
  UniqueFd socket;
  Peer peer;
  Quotas::ConnectionShare share;
  uint64_t id;
  TimePoint since;
  bool closed = false;  // it is removed when the round's events have been handled

  // From the hello on.
  std::optional<ipc::Role> role;
  std::string name;  // cleaned for people's eyes

  bool Send(const auto& message) { return ipc::Send(socket.get(), message); }
  // Says why the client cannot be served. The caller closes the connection.
  void SendRejected(const std::string& reason);
  bool SendReply(XResult result, uint32_t count, const std::string& text);
  // Has the client read everything that it was sent? True also where the kernel does not say.
  bool HasReadAll() const;
  // Has the client closed its end? What it has sent before may still be unread.
  bool HasLeft() const;
};

// Printable ASCII up to the first NUL; other bytes become '?'.
std::string CleanText(const char* text, size_t size);

bool IsValid(const ipc::WireHints& hints);
sched::Hints FromWire(const ipc::WireHints& hints);
ipc::WireHints ToWire(const sched::Hints& hints);

}  // namespace xsched::server
