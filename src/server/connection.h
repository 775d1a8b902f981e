// One client's connection: its socket, and the client's identity. The server trusts nothing that it sends.
#pragma once

#include <errno.h>

#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"
#include "sched/core/types.h"
#include "server/access.h"
#include "server/quotas.h"
#include "server/sent.h"
#include "server/tenants/process_identity.h"

namespace xsched::server {

struct Connection {
  UniqueFd socket;
  Peer peer;
  Quotas::ConnectionShare share;
  uint64_t id;
  TimePoint since;
  bool closed = false;  // removed when the round's events have been handled

  // Set by the hello.
  std::optional<ipc::Role> role;
  uint16_t minor = 0;                       // of the protocol that the client speaks
  std::string name;                         // cleaned for display
  std::optional<ProcessIdentity> identity;  // of the client's process; read when it is first needed

  bool Send(const auto& message) { return ipc::Send(socket.get(), message); }
  // The same for a part of an answer, which may follow later.
  Sent SendPart(const auto& message) {
    if (Send(message)) return Sent::kAll;
    return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::kRestLater : Sent::kFailed;
  }
  template <typename... Messages>
  Sent SendPart(const std::variant<Messages...>& message) {
    return std::visit([&](const auto& known) { return SendPart(known); }, message);
  }
  // Sends the reason why the client is rejected. The caller closes the connection.
  void SendRejected(const std::string& reason);
  bool SendReply(XResult result, uint32_t count, const std::string& text);
  // True if an answer of one message can be sent now, whatever its size.
  bool HasRoom() const;
  // True if the client has read everything that it was sent, or if the kernel does not report this.
  bool HasReadAll() const;
  // True if the client has closed its end. Messages that it sent before may still be unread.
  bool HasLeft() const;
};

bool IsValid(const sched::Hints& hints);

}  // namespace xsched::server
