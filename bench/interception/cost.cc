#include "interception/cost.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace xsched::bench {
namespace {

Json InChild(const Case& which) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    int status = 0;
    try {
      std::printf("%s\n", which.name.c_str());
      const std::string text = which.measure().dump();
      if (write(ends[1], text.data(), text.size()) < 0) status = 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", which.name.c_str(), error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  close(ends[1]);
  std::string text;
  char part[4096];
  for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
    text.append(part, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(which.name + ": failed");
  Json result = Json::parse(text);
  result["case"] = which.name;
  return result;
}

bool AnyAllocation(const Json& results) {
  for (const Json& result : results) {
    for (const Json& call : result["calls"]) {
      if (call["allocations"] > 0) return true;
    }
  }
  return false;
}

}  // namespace

int64_t Threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

int RunCases(const std::vector<Case>& cases, int argc, char** argv) {
  try {
    Json results = Json::array();
    for (const Case& which : cases) results.push_back(InChild(which));
    if (argc == 3 && std::strcmp(argv[1], "--json") == 0) std::ofstream(argv[2]) << results.dump(2) << "\n";
    return AnyAllocation(results) ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

}  // namespace xsched::bench
