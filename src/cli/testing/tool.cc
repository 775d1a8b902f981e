#include "cli/testing/tool.h"

#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "server/testing/server_process.h"

namespace xsched::cli::testing {
namespace {

constexpr unsigned kTimeLimit = 60;  // seconds

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void SetEnvironment(const Environment& environment) {
  std::vector<std::string> ours;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string name(*entry, std::string(*entry).find('='));
    if (name.starts_with("XSCHED_") || name == "OPENCL_LAYERS" || name == "LD_PRELOAD") ours.push_back(name);
  }
  for (const std::string& name : ours) unsetenv(name.c_str());
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

bool BecomeUser(uid_t user) {
  return user == 0 || (setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0);
}

Outcome Run(const char* path, std::vector<std::string> words, const Environment& environment, uid_t user) {
  server::testing::TempFolder folder;
  std::string out = folder.path() + "/out";
  std::string errors = folder.path() + "/errors";
  pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) {
    dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    dup2(open(errors.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    SetEnvironment(environment);
    alarm(kTimeLimit);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // That user may not be let into the folder that it was built in.
    int program = open(path, O_PATH | O_CLOEXEC);
    if (BecomeUser(user)) fexecve(program, argv.data(), environ);
    _exit(125);
  }
  Outcome outcome;
  int status = 0;
  waitpid(child, &status, 0);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  outcome.out = Content(out);
  outcome.errors = Content(errors);
  return outcome;
}

}  // namespace

Outcome RunXsched(const std::vector<std::string>& arguments, const Environment& environment, uid_t user) {
  std::vector<std::string> words = {"xsched"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Run(XSCHED_PROGRAM, words, environment, user);
}

Outcome RunShell(const std::string& command, const Environment& environment) {
  return Run("/bin/sh", {"sh", "-c", command, XSCHED_PROGRAM}, environment, /*user=*/0);
}

}  // namespace xsched::cli::testing
