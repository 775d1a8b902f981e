// Ctrl-C and similar signals, for a command that must clean up before it ends.
#pragma once

#include <signal.h>

#include <chrono>
#include <exception>

#include "base/fd.h"

namespace xsched::cli {

// A signal asked the command to end.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While it lives, SIGINT, SIGTERM and SIGHUP are blocked. Signals that this process ignores stay ignored. A
// signal that nobody has taken takes effect when it is destroyed, so it must outlive everything that cleans
// up. For a process with one thread.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Readable when a signal has come.
  int fd() const { return fd_.get(); }
  // True if one has come. It is then the command's to end.
  bool Take() const;
  // Throws Interrupted as soon as a signal has come. The process ends by that signal.
  void Sleep(std::chrono::milliseconds time) const;

 private:
  UniqueFd fd_;
  sigset_t before_{};
};

}  // namespace xsched::cli
