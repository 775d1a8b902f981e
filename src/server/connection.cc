#include "server/connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "sched/core/reservation.h"

namespace xsched::server {

void Connection::SendRejected(const std::string& reason) { Send(ipc::RejectedFrom(reason)); }

bool Connection::SendReply(XResult result, uint32_t count, const std::string& text) {
  return Send(ipc::ReplyFrom(result, count, text));
}

bool Connection::HasReadAll() const {
  int unread = 0;
  return ioctl(socket.get(), SIOCOUTQ, &unread) != 0 || unread == 0;
}

// The kernel says that a socket can be written when a quarter of its buffer is used at most.
bool Connection::HasRoom() const {
  pollfd writable{socket.get(), POLLOUT, 0};
  return poll(&writable, 1, 0) == 1 && (writable.revents & POLLOUT) != 0;
}

bool Connection::HasLeft() const {
  pollfd end{socket.get(), POLLRDHUP, 0};
  return poll(&end, 1, 0) == 1 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

namespace {

bool IsPriority(int32_t priority) { return priority >= PRIORITY_NO_EXECUTE && priority <= PRIORITY_MAX; }

// −1 (none), or microseconds that can be added to any time.
bool IsTime(int64_t us) { return us >= -1 && us <= DEADLINE_MAX; }
static_assert(NO_DEADLINE == -1 && NO_LAXITY == -1);

}  // namespace

bool IsValid(const sched::Hints& hints) {
  return IsPriority(hints.priority) && hints.utilization >= UTILIZATION_MIN &&
         hints.utilization <= UTILIZATION_MAX && IsTime(hints.deadline_us) && IsTime(hints.laxity_us) &&
         IsPriority(hints.lax_priority) && IsPriority(hints.critical_priority) &&
         hints.weight >= WEIGHT_MIN && hints.weight <= WEIGHT_MAX && sched::IsReservation(hints) &&
         hints.latency_target_us >= NO_LATENCY_TARGET && hints.latency_target_us <= LATENCY_TARGET_MAX &&
         hints.floor >= FLOOR_MIN && hints.floor <= FLOOR_MAX;
}

}  // namespace xsched::server
