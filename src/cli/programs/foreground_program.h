// A program that this process runs in its own place: it has the terminal, the process group and all
// descriptors, and this process waits for it. What is sent to this process is passed on to the program, and
// this process stops, goes on and ends as the program does.
//
//   who started us ---- signals, waits for us ----> this process ---- passes signals on, waits ----> program
//   terminal ---- signals to the whole process group: to both ---------------------------------------^
//
// If this process is killed (SIGKILL), so is the program. For a process with one thread.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cli/programs/signal_witness.h"

struct signalfd_siginfo;

namespace xsched::cli {

class ForegroundProgram {
 public:
  // Makes its process, which then waits for Begin. This process gives up its input, its output and all other
  // descriptors, except for stderr and `kept` (-1: none): whoever reads from the program sees the end of its
  // output when it ends. Throws CommandError if no process can be made.
  ForegroundProgram(const std::vector<std::string>& words, int kept);
  ForegroundProgram(const ForegroundProgram&) = delete;
  ForegroundProgram& operator=(const ForegroundProgram&) = delete;

  // Returns when it runs. Throws CommandError if it cannot be run.
  void Begin();

  // Readable when TakeSignals has something to do.
  int fd() const { return signals_.get(); }
  void TakeSignals();
  bool has_ended() const { return has_ended_; }

  // REQUIRES: it has ended. Its exit status, or minus the signal that ended it.
  int status() const { return status_; }
  // Ends this process as it has ended.
  [[noreturn]] void EndLikeIt();

 private:
  [[noreturn]] void Become(const std::vector<std::string>& words, pid_t parent);
  void LetGo(int kept) const;
  void Pass(const signalfd_siginfo& signal) const;
  // Has it ended, stopped, or gone on?
  void LookAtIt();
  void StopLikeIt(int signal);
  bool HasGoneOn() const;

  pid_t pid_ = -1;
  sigset_t mask_{};               // before
  struct sigaction of_child_ {};  // likewise
  UniqueFd go_;                   // written to: it may begin
  UniqueFd error_;                // the error number if it cannot be run
  UniqueFd signals_;
  std::optional<SignalWitness> witness_;  // of what the program gets by itself
  std::string name_;
  bool is_stopped_ = false;
  bool has_ended_ = false;
  int status_ = 0;
};

}  // namespace xsched::cli
