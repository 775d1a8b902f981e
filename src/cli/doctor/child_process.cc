#include "cli/doctor/child_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "base/fd.h"

namespace xsched::cli {
namespace {

constexpr std::chrono::seconds kTimeLimit{20};

// The first character of a complete answer. It distinguishes an empty answer from a child that died early.
constexpr char kDone = '!';

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    ssize_t written = write(fd, text.data() + done, text.size() - done);
    if (written <= 0) break;
    done += static_cast<size_t>(written);
  }
}

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) != 1) return text;
    ssize_t bytes = read(fd, buffer, sizeof buffer);
    if (bytes <= 0) return text;
    text.append(buffer, static_cast<size_t>(bytes));
  }
}

// Runs `work` in a child, and returns what it writes to the descriptor `answer`.
std::string AnswerOf(const std::function<void(int answer)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "";
  UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  pid_t child = fork();
  if (child < 0) return "";
  if (child == 0) {
    // The driver's own output is not part of our report.
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    work(to_parent.get());
    _exit(0);
  }
  to_parent.Reset();
  std::string text = ReadToEnd(from_child.get());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return text;
}

}  // namespace

std::optional<std::string> InChild(const std::function<std::string()>& work) {
  std::string text = AnswerOf([&work](int answer) { WriteAll(answer, work() + kDone); });
  if (text.empty() || text.back() != kDone) return std::nullopt;
  text.pop_back();
  return text;
}

std::string OutputOf(const std::vector<std::string>& command, const std::vector<Variable>& environment) {
  return AnswerOf([&](int answer) {
    SetEnvironment(environment);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    dup2(answer, STDOUT_FILENO);
    execv(arguments[0], arguments.data());
  });
}

std::string LoadProblem(const std::string& library) {
  return InChild([&] { return std::string(dlopen(library.c_str(), RTLD_NOW) != nullptr ? "" : dlerror()); })
      .value_or(library + " crashed or hung while it was loaded");
}

}  // namespace xsched::cli
