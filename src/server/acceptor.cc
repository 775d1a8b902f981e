#include "server/acceptor.h"

#include <sys/epoll.h>

#include <stdexcept>
#include <utility>

#include "server/event_tag.h"

namespace xsched::server {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(100);
constexpr uint64_t kTag = EventTag(EventSource::kListener);

}  // namespace

Acceptor::Acceptor(Listener& listener, EventLoop& loop, Connections& connections)
    : listener_(listener), loop_(loop), connections_(connections) {
  if (!loop_.Watch(listener_.fd(), EPOLLIN, kTag)) throw std::runtime_error("cannot watch the socket");
}

void Acceptor::Accept(TimePoint now) {
  while (UniqueFd socket = listener_.Accept()) {
    if (std::optional<Peer> peer = PeerOf(socket.get()))
      connections_.Add(std::move(socket), std::move(*peer), now);
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
