#include "slurm/task_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fd.h"
#include "base/system_calls.h"

namespace xsched::slurm {
namespace {

// Linux starts no program with a larger environment than 6 MiB.
constexpr size_t kMostBytes = 8 << 20;
// A program that was killed, and does not end by then, is in the hands of the kernel (a file system that does
// not answer). Slurm collects it when it ends.
constexpr Duration kTimeToDie = std::chrono::seconds(1);
constexpr const char* kEnv = "/usr/bin/env";
constexpr int kFirstArguments = 3;
constexpr int kLastArguments = 4;

// "xsched run --no-server --priority=5 … -- env -0"
class Command {
 public:
  Command(const char* program, const Values& values) {
    for (const char* word : {program, "run", "--no-server"}) Add(word);
    for (int i = 0; i < kSettings; ++i) {
      if (!values[i]) continue;
      snprintf(options_[i], sizeof options_[i], "--%s=%d", kSettingInfo[i].name, *values[i]);
      Add(options_[i]);
    }
    for (const char* word : {"--", kEnv, "-0"}) Add(word);
  }
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  char* const* words() { return words_; }

 private:
  void Add(const char* word) { words_[count_++] = const_cast<char*>(word); }

  char options_[kSettings][32];
  char* words_[kFirstArguments + kSettings + kLastArguments] = {};  // the last one stays null
  int count_ = 0;
};

// What slurmstepd has kept of its privileges is given up for good. By the system calls themselves: the C
// library's functions concern all threads, and a child of many threads has one.
bool BecomeTheEffectiveUser() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  syscall(SYS_setresuid, -1, 0, -1);  // fails for whoever has no privileges
  return syscall(SYS_setresgid, group, group, group) == 0 && syscall(SYS_setresuid, user, user, user) == 0;
}

// Neither a process nor a thread. Not while the user changes: the program could not be started then.
bool StartNothingElse() {
  const rlimit none{0, 0};
  return setrlimit(RLIMIT_NPROC, &none) == 0;
}

[[noreturn]] void Become(char* const* words, char* const* environment, int output, int errors) {
  const int nothing = open("/dev/null", O_RDONLY);
  sigset_t none;
  sigemptyset(&none);
  if (nothing >= 0 && BecomeTheEffectiveUser() && StartNothingElse() && dup2(nothing, STDIN_FILENO) >= 0 &&
      dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0) {
    CloseDescriptors(STDERR_FILENO + 1);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execve(words[0], words, environment);
  }
  _exit(127);
}

// What a program writes, up to a size. A pipe, and no file: the limit of the size of files does not concern
// it.
class Output {
 public:
  explicit Output(size_t most) : most_(most) {}

  Result<> Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, "pipe");
    from_.Reset(ends[0]);
    to_.Reset(ends[1]);
    // A program that opens its end again can read from it, so that there is nothing to read after poll.
    if (fcntl(from_.get(), F_SETFL, O_NONBLOCK) != 0) return Error::FromErrno(errno, "fcntl");
    bytes_.reset(static_cast<char*>(malloc(most_ + 1)));
    if (!bytes_) return Error::Make("no memory for %zu bytes", most_);
    return {};
  }
  int to() const { return to_.get(); }
  void CloseWritersEnd() { to_.Reset(); }
  // -1: the end has been read.
  int from() const { return from_.get(); }
  // What is beyond the size is counted, and not kept.
  void ReadSome() {
    char beyond[4096];
    char* const place = size_ < most_ ? bytes_.get() + size_ : beyond;
    const ssize_t count = read(from_.get(), place, size_ < most_ ? most_ - size_ : sizeof beyond);
    if (count > 0) size_ += static_cast<size_t>(count);
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) from_.Reset();
  }
  bool IsTooLong() const { return size_ > most_; }
  // Ends with a NUL.
  Text Take() && {
    Text text;
    text.size = std::min(size_, most_);
    bytes_.get()[text.size] = '\0';
    text.memory = std::move(bytes_);
    return text;
  }

 private:
  const size_t most_;
  UniqueFd from_;
  UniqueFd to_;
  std::unique_ptr<char, Text::Free> bytes_;
  size_t size_ = 0;
};

// False: they have not both ended by then, or the first one is too long.
bool ReadBoth(Output& output, Output& errors, TimePoint deadline) {
  while (output.from() >= 0 || errors.from() >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - MonotonicClock::now());
    if (left.count() <= 0 || output.IsTooLong()) return false;
    pollfd ready[] = {{output.from(), POLLIN, 0}, {errors.from(), POLLIN, 0}};
    if (poll(ready, 2, static_cast<int>(left.count())) <= 0) continue;
    if (ready[0].revents != 0) output.ReadSome();
    if (ready[1].revents != 0) errors.ReadSome();
  }
  return !output.IsTooLong();
}

// Its status; -1: somebody else has collected it. nullopt: it has not ended by then.
std::optional<int> WaitFor(pid_t child, TimePoint deadline) {
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno == ECHILD) return -1;
    if (MonotonicClock::now() >= deadline) return std::nullopt;
    SleepFor(std::chrono::milliseconds(1));
  }
}

// The first line, without the name that every line of ours has.
void CopyLine(const Text& errors, char* line, size_t size) {
  std::string_view text(errors.memory.get());
  constexpr std::string_view kName = "xsched: ";
  text = text.substr(0, text.find('\n'));
  if (text.starts_with(kName)) text.remove_prefix(kName.size());
  line[text.copy(line, size - 1)] = '\0';
}

}  // namespace

Result<Text> EnvironmentByXSched(const char* program, const Values& values, char* const* environment,
                                 Duration patience) {
  if (faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) != 0) return Error::FromErrno(errno, "%s", program);
  Output output(kMostBytes);
  Output errors(sizeof Text::warning * 2);
  for (Output* each : {&output, &errors})
    if (Result<> opened = each->Open(); !opened) return opened.error();
  Command command(program, values);
  const TimePoint deadline = MonotonicClock::now() + patience;
  const pid_t child = fork();
  if (child < 0) return Error::FromErrno(errno, "fork");
  if (child == 0) Become(command.words(), environment, output.to(), errors.to());
  for (Output* each : {&output, &errors}) each->CloseWritersEnd();
  const bool is_read = ReadBoth(output, errors, deadline);
  const std::optional<int> status = is_read ? WaitFor(child, deadline) : std::nullopt;
  if (!status) {
    kill(child, SIGKILL);
    static_cast<void>(WaitFor(child, MonotonicClock::now() + kTimeToDie));
    if (output.IsTooLong()) return Error::Make("%s writes more than any environment has", program);
    return Error::Make("%s did not answer within %g s", program, InSeconds(patience));
  }
  char warning[sizeof Text::warning];
  CopyLine(std::move(errors).Take(), warning, sizeof warning);
  if (*status != 0) return Error::Make("%s: %s", program, warning[0] != '\0' ? warning : "it cannot be run");
  Text text = std::move(output).Take();
  if (text.size == 0) return Error::Make("%s has not answered", program);
  memcpy(text.warning, warning, sizeof warning);
  return text;
}

}  // namespace xsched::slurm
