#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>

#include "base/log.h"

namespace xsched {
namespace {

constinit cpu_set_t processors_at_load{};
constinit bool knows_processors = false;

[[gnu::constructor]] void RememberProcessors() {
  knows_processors = sched_getaffinity(0, sizeof processors_at_load, &processors_at_load) == 0;
}

// Some sandboxes forbid to ask for what the thread has anyway.
bool HasBoth() {
  cpu_set_t own{};
  return sched_getscheduler(0) == SCHED_OTHER &&
         (!knows_processors ||
          (sched_getaffinity(0, sizeof own, &own) == 0 && CPU_EQUAL(&own, &processors_at_load)));
}

class Attributes {
 public:
  explicit Attributes(bool with_processors) {
    pthread_attr_init(&attributes_);
    const sched_param none{};
    pthread_attr_setinheritsched(&attributes_, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes_, SCHED_OTHER);
    pthread_attr_setschedparam(&attributes_, &none);
    if (with_processors)
      pthread_attr_setaffinity_np(&attributes_, sizeof processors_at_load, &processors_at_load);
  }
  ~Attributes() { pthread_attr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

int Create(pthread_t* thread, void* (*main)(void*), void* argument) {
  if (HasBoth()) return pthread_create(thread, nullptr, main, argument);
  int error = pthread_create(thread, Attributes(knows_processors).get(), main, argument);
  // The machine may have taken these processors from the process since.
  if (error == EINVAL && knows_processors)
    error = pthread_create(thread, Attributes(false).get(), main, argument);
  // A sandbox may forbid to set either.
  if (error != 0 && error != EAGAIN) error = pthread_create(thread, nullptr, main, argument);
  return error;
}

}  // namespace

int StartQuietThread(pthread_t* thread, void* (*main)(void*), void* argument) {
  LogEnabled(LogLevel::kError);  // reads XSCHED_LOG
  sigset_t blocked;
  sigset_t old;
  sigfillset(&blocked);
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  for (int fault : kFaults) sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  const int error = Create(thread, main, argument);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return error;
}

}  // namespace xsched
