// Blocks Ctrl-C and similar signals for a command that must clean up. The command notices them where it
// waits.
#pragma once

#include <signal.h>

#include <chrono>
#include <exception>

namespace xsched::cli {

// A signal asked the command to end. The process ends by that signal when Interrupts is destroyed.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While it lives, SIGINT, SIGTERM and SIGHUP are blocked. Signals that this process ignores stay ignored. It
// must outlive everything that cleans up. For a process with one thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Throws Interrupted as soon as one of the signals arrives.
  void Sleep(std::chrono::milliseconds time) const;

 private:
  sigset_t held_;
  sigset_t before_;
};

}  // namespace xsched::cli
