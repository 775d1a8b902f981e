// A process that does nothing but see which signals are sent to the whole process group. Whoever passes
// signals on to another process of the group asks it, so that this process does not get them twice.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::cli {

class SignalWitness {
 public:
  // `seen`: the signals in question. This process has blocked them. Without a witness, nothing is seen.
  explicit SignalWitness(const sigset_t& seen);
  ~SignalWitness();
  SignalWitness(const SignalWitness&) = delete;
  SignalWitness& operator=(const SignalWitness&) = delete;

  // The signal has just come to this process: did it come to the group? Waits a moment for the witness.
  bool Saw(int signal) const;
  int fd() const { return notes_.get(); }

 private:
  pid_t pid_ = -1;
  UniqueFd notes_;
};

}  // namespace xsched::cli
