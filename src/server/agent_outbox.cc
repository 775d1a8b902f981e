#include "server/agent_outbox.h"

#include "server/connection.h"
#include "server/limits.h"

namespace xsched::server {

// A process must not keep an old slice: it might have the device to itself for 100 ms at a stretch, or make
// no progress at all. So an agent that does not read now gets the last slice as soon as it reads.
bool AgentOutbox::SendSlice(Connection& connection, const ipc::ProcessSlice& slice) {
  // An older one that was kept must not be sent after it.
  const bool in_order = !slices_.contains(slice.device);
  if (in_order && connection.Send(slice)) return true;
  slices_[slice.device] = slice.slice_us;
  return slices_.size() <= kMaxUnsentSlices;
}

bool AgentOutbox::SendPong(Connection& connection, uint64_t cookie) {
  ipc::Pong pong{};
  pong.cookie = cookie;
  if (connection.Send(pong)) return true;
  pong_ = cookie;
  return ++unanswered_pings_ <= kMaxUnansweredPings;
}

bool AgentOutbox::SendKept(Connection& connection) {
  return SendKeptSlices(connection) && SendKeptPong(connection);
}

bool AgentOutbox::SendKeptSlices(Connection& connection) {
  while (!slices_.empty()) {
    auto first = slices_.begin();
    ipc::ProcessSlice message{};
    message.device = first->first;
    message.slice_us = first->second;
    if (!connection.Send(message)) return false;
    slices_.erase(first);
  }
  return true;
}

bool AgentOutbox::SendKeptPong(Connection& connection) {
  if (!pong_) return true;
  ipc::Pong pong{};
  pong.cookie = *pong_;
  if (!connection.Send(pong)) return false;
  pong_.reset();
  unanswered_pings_ = 0;
  return true;
}

}  // namespace xsched::server
