#include "server/acceptor.h"

#include <sys/epoll.h>

#include <stdexcept>
#include <utility>

#include "server/event_tag.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(100);
// Work, in what one connection takes: that it is rejected, where what the client sent may have to be closed.
constexpr size_t kRejectedAs = 3;
constexpr uint64_t kTag = EventTag(EventSource::kListener);

}  // namespace

Acceptor::Acceptor(Listener& listener, EventLoop& loop, Connections& connections, const AccessRules& access)
    : listener_(listener), loop_(loop), connections_(connections), access_(access) {
  if (!loop_.Watch(listener_.fd(), EPOLLIN, kTag)) throw std::runtime_error("cannot watch the socket");
}

void Acceptor::Accept(TimePoint now) {
  // Further ones are accepted in the next round.
  for (size_t work = 0; work < kMaxAcceptedPerRound; ++work) {
    UniqueFd socket = listener_.Accept();
    if (!socket) break;
    std::optional<Peer> peer;
    if (!listener_.must_reject()) peer = PeerOf(socket.get());
    if (!peer) {
      connections_.Discard(std::move(socket));
      listener_.KeepSpare();
      work += kRejectedAs;
      continue;
    }
    access_.Decide(*peer);
    if (connections_.Add(std::move(socket), std::move(*peer), now) == nullptr) work += kRejectedAs;
  }
  if (!listener_.exhausted()) return;
  // Trying again at once would keep a processor busy.
  resume_at_ = now + kPause;
  static_cast<void>(loop_.Watch(listener_.fd(), 0, kTag));
}

TimePoint Acceptor::Resume(TimePoint now) {
  if (now >= resume_at_) {
    resume_at_ = kNever;
    static_cast<void>(loop_.Watch(listener_.fd(), EPOLLIN, kTag));
  }
  return resume_at_;
}

}  // namespace xsched::server
