#include "cli/programs/signal_witness.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "base/system_calls.h"

namespace xsched::cli {
namespace {

struct Note {
  int signal;
  TimePoint at;
};

// Somebody signals all processes of a group, at once or one by one, within this time.
constexpr Duration kTogether = std::chrono::milliseconds(20);

// Until this process's parent ends.
[[noreturn]] void Watch(const sigset_t& seen, int notes, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  // It keeps nothing of others open.
  if (notes > 0) CloseDescriptors(0, notes - 1);
  CloseDescriptors(notes + 1);
  for (;;) {
    Note note{.signal = sigwaitinfo(&seen, nullptr), .at = MonotonicClock::now()};
    if (note.signal > 0 && write(notes, &note, sizeof note) < 0) _exit(0);
  }
}

}  // namespace

SignalWitness::SignalWitness(const sigset_t& seen) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  notes_.Reset(ends[0]);
  UniqueFd written(ends[1]);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) Watch(seen, written.get(), parent);
}

SignalWitness::~SignalWitness() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool SignalWitness::Saw(int signal) const {
  const TimePoint now = MonotonicClock::now();
  const TimePoint end = now + kTogether;
  for (;;) {
    Note note{};
    while (notes_ && read(notes_.get(), &note, sizeof note) == sizeof note) {
      if (note.signal == signal && note.at >= now - kTogether) return true;
    }
    const Duration left = end - MonotonicClock::now();
    if (pid_ <= 0 || left <= Duration::zero()) return false;
    pollfd ready{notes_.get(), POLLIN, 0};
    poll(&ready, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

}  // namespace xsched::cli
