// Ctrl-C and its kind for a command that must clean up: held back, and seen where it waits.
#pragma once

#include <signal.h>

#include <chrono>
#include <exception>

namespace xsched::cli {

// The command was told to end. The process ends by that signal when its Interrupts is gone.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

// While one lives, SIGINT, SIGTERM and SIGHUP wait (those that this process ignores stay ignored). It must
// outlive what has to be cleaned up. For a process with one thread.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Throws Interrupted as soon as one of the signals is there.
  void Sleep(std::chrono::milliseconds time) const;

 private:
  sigset_t held_;
  sigset_t before_;
};

}  // namespace xsched::cli
