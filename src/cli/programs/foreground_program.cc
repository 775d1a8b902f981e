#include "cli/programs/foreground_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/clock.h"
#include "base/system_calls.h"
#include "cli/become.h"
#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

// Longer than it takes to signal a process group; shorter than anybody takes to stop and continue one.
constexpr Duration kShortStop = std::chrono::milliseconds(2);

// The reading end, and the writing end.
void MakePipe(UniqueFd& out, UniqueFd& in) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw CommandError(kExitFailed, "cannot start a process");
  out.Reset(ends[0]);
  in.Reset(ends[1]);
}

// All that can be waited for: not those that a fault of this process raises.
sigset_t Waitable() {
  sigset_t set;
  sigfillset(&set);
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) sigdelset(&set, fault);
  return set;
}

// The kernel raises it because of the terminal, for the whole process group, or because of what this process
// does.
bool IsNotForTheProgram(const signalfd_siginfo& signal) {
  // A timer that was set before this process became xsched would have been the program's. Where a terminal
  // hangs up, the session's leader alone is told, which would be the program.
  return signal.ssi_code == SI_KERNEL && signal.ssi_signo != SIGALRM && signal.ssi_signo != SIGHUP;
}

}  // namespace

ForegroundProgram::ForegroundProgram(const std::vector<std::string>& words, int kept) : name_(words[0]) {
  UniqueFd go, error;
  MakePipe(go, go_);
  MakePipe(error_, error);
  const sigset_t waitable = Waitable();
  sigprocmask(SIG_BLOCK, &waitable, &mask_);
  // If it were ignored, children could not be waited for.
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &of_child_);
  signals_.Reset(signalfd(-1, &waitable, SFD_NONBLOCK | SFD_CLOEXEC));
  witness_.emplace(waitable);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0 || !signals_) {
    sigprocmask(SIG_SETMASK, &mask_, nullptr);
    throw CommandError(kExitFailed, "cannot start a process");
  }
  if (pid_ == 0) {
    go_ = std::move(go);
    error_ = std::move(error);
    Become(words, parent);
  }
  go.Reset();
  error.Reset();
  LetGo(kept);
}

// In its process.
void ForegroundProgram::Become(const std::vector<std::string>& words, pid_t parent) {
  char byte = 0;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitCannotRun);
  sigaction(SIGCHLD, &of_child_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
  // Nothing to read: the other end was closed, and it runs all the same.
  while (read(go_.get(), &byte, 1) < 0 && errno == EINTR) {
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  if (write(error_.get(), &why, sizeof why) != sizeof why) _exit(kExitCannotRun);
  _exit(kExitNoProgram);
}

void ForegroundProgram::LetGo(int kept) const {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (null) dup2(null.get(), fd);
  }
  std::vector<int> ours = {STDERR_FILENO, go_.get(), error_.get(), signals_.get(), witness_->fd(), kept};
  std::sort(ours.begin(), ours.end());
  int last = STDERR_FILENO;
  for (int fd : ours) {
    if (fd > last + 1) CloseDescriptors(last + 1, fd - 1);
    last = std::max(last, fd);
  }
  CloseDescriptors(last + 1);
}

void ForegroundProgram::Begin() {
  const char byte = 1;
  int why = 0;
  // If it has ended meanwhile, that is found out below.
  if (write(go_.get(), &byte, 1) != 1) why = 0;
  go_.Reset();
  ssize_t length;
  while ((length = read(error_.get(), &why, sizeof why)) < 0 && errno == EINTR) {
  }
  error_.Reset();
  if (length != sizeof why) return;
  waitpid(pid_, nullptr, 0);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
  throw CannotRun(name_, why);
}

void ForegroundProgram::TakeSignals() {
  signalfd_siginfo signal;
  while (!has_ended_ && read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo == SIGCHLD) {
      LookAtIt();
    } else {
      Pass(signal);
    }
  }
}

void ForegroundProgram::Pass(const signalfd_siginfo& signal) const {
  const auto number = static_cast<int>(signal.ssi_signo);
  if (IsNotForTheProgram(signal)) return;
  // This process wrote where nobody reads.
  if (signal.ssi_pid == static_cast<uint32_t>(getpid())) return;
  // If it was for the whole process group, the program runs again by itself.
  if (number == SIGCONT && !is_stopped_) return;
  if (number != SIGCONT && witness_->Saw(number)) return;
  if (signal.ssi_code == SI_QUEUE) {
    sigval value{};
    value.sival_ptr = reinterpret_cast<void*>(static_cast<uintptr_t>(signal.ssi_ptr));
    sigqueue(pid_, number, value);
  } else {
    kill(pid_, number);
  }
}

void ForegroundProgram::LookAtIt() {
  siginfo_t info{};
  while (!has_ended_ &&
         waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    switch (info.si_code) {
      case CLD_STOPPED:
        StopLikeIt(info.si_status);
        break;
      case CLD_CONTINUED:
        is_stopped_ = false;
        break;
      default:
        has_ended_ = true;
        status_ = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
    }
    info = {};
  }
}

bool ForegroundProgram::HasGoneOn() const {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WCONTINUED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0;
}

void ForegroundProgram::StopLikeIt(int signal) {
  is_stopped_ = true;
  if (HasGoneOn()) return;
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  if (action.sa_handler != SIG_DFL) signal = SIGSTOP;
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  const TimePoint before = MonotonicClock::now();
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);  // here it stops
  sigprocmask(SIG_BLOCK, &only, nullptr);
  // In an orphaned process group, it has not stopped.
  if (MonotonicClock::now() - before < kShortStop) return;
  // Somebody may have continued this process alone. Otherwise the program goes on at about this time.
  SleepFor(kShortStop);
  if (!HasGoneOn()) kill(pid_, SIGCONT);
}

void ForegroundProgram::EndLikeIt() {
  witness_.reset();
  if (status_ >= 0) std::exit(status_);
  const int signal = -status_;
  prctl(PR_SET_DUMPABLE, 0);  // the program's core is enough
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  constexpr int kOfSignal = 128;
  std::exit(kOfSignal + signal);
}

}  // namespace xsched::cli
