#include "server/socket_closer.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/fail.h"

namespace xsched::server {
namespace {

constexpr int kSignal = SIGALRM;

volatile sig_atomic_t interrupted = 0;

void Interrupted(int) { interrupted = 1; }

}  // namespace

SocketCloser::SocketCloser() {
  struct sigaction action {};
  action.sa_handler = Interrupted;  // without SA_RESTART: it is there to interrupt
  if (sigaction(kSignal, &action, nullptr) != 0) Fail("cannot set the handler of a signal");
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) Fail("cannot make a timer");
}

SocketCloser::~SocketCloser() { timer_delete(timer_); }

bool SocketCloser::Close(UniqueFd socket) noexcept {
  interrupted = 0;
  InterruptAfter(kLongest);
  socket.Reset();
  InterruptAfter(Duration::zero());
  return interrupted == 0;
}

void SocketCloser::InterruptAfter(Duration time) noexcept {
  itimerspec when{};
  when.it_value.tv_nsec = time.count();
  // Once more in case that the signal comes before the wait begins.
  when.it_interval.tv_nsec = time.count();
  timer_settime(timer_, 0, &when, nullptr);
}

}  // namespace xsched::server
