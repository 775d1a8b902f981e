#include "slurm/task_environment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/system_calls.h"

namespace xsched::slurm {
namespace {

constexpr unsigned kPatienceSeconds = 10;
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

[[noreturn]] void Become(char* const* words, char* const* environment, int output, int errors) {
  const int nothing = open("/dev/null", O_RDONLY);
  sigset_t none;
  sigemptyset(&none);
  if (nothing >= 0 && BecomeTheEffectiveUser() && dup2(nothing, STDIN_FILENO) >= 0 &&
      dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0) {
    CloseDescriptors(STDERR_FILENO + 1);
    signal(SIGALRM, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    alarm(kPatienceSeconds);  // goes on in the next program, and ends it
    execve(words[0], words, environment);
  }
  _exit(127);
}

// All of the file. REQUIRES: nobody writes to it any more.
Result<Text> ReadAll(int fd) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return Error::FromErrno(errno, "fstat");
  Text text;
  const auto size = static_cast<size_t>(about.st_size);
  text.memory.reset(static_cast<char*>(calloc(size + 1, 1)));
  if (!text.memory) return Error::Make("no memory for an environment of %zu bytes", size);
  while (text.size < size) {
    const ssize_t count =
        pread(fd, text.memory.get() + text.size, size - text.size, static_cast<off_t>(text.size));
    if (count <= 0) break;
    text.size += static_cast<size_t>(count);
  }
  return text;
}

// The first line, without the name that every line of ours has.
void ReadLine(int fd, char* line, size_t size) {
  const ssize_t count = pread(fd, line, size - 1, 0);
  line[count > 0 ? count : 0] = '\0';
  line[strcspn(line, "\n")] = '\0';
  constexpr size_t kName = sizeof "xsched: " - 1;
  if (strncmp(line, "xsched: ", kName) == 0) memmove(line, line + kName, strlen(line + kName) + 1);
}

}  // namespace

Result<Text> EnvironmentByXSched(const char* program, const Values& values, char* const* environment) {
  if (faccessat(AT_FDCWD, program, X_OK, AT_EACCESS) != 0) return Error::FromErrno(errno, "%s", program);
  const UniqueFd output(MemfdCreate("xsched-environment", MFD_CLOEXEC));
  const UniqueFd errors(MemfdCreate("xsched-errors", MFD_CLOEXEC));
  if (!output || !errors) return Error::FromErrno(errno, "memfd_create");
  Command command(program, values);
  const pid_t child = fork();
  if (child < 0) return Error::FromErrno(errno, "fork");
  if (child == 0) Become(command.words(), environment, output.get(), errors.get());
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error::FromErrno(errno, "waiting for %s", program);
  }
  char warning[sizeof Text::warning];
  ReadLine(errors.get(), warning, sizeof warning);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return Error::Make("%s did not answer within %u s", program, kPatienceSeconds);
  if (status != 0) return Error::Make("%s: %s", program, warning[0] != '\0' ? warning : "it cannot be run");
  Result<Text> text = ReadAll(output.get());
  if (!text) return text;
  if (text->size == 0) return Error::Make("%s has not answered", program);
  memcpy(text->warning, warning, sizeof warning);
  return text;
}

}  // namespace xsched::slurm
