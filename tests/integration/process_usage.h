// Counts the system's resources that this process has, for tests that check for leaks.
#pragma once

#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

struct ProcessUsage {
  long fds;
  long threads;
  long resident_kb;

  static ProcessUsage Now() {
    auto count = [](const char* folder) {
      std::filesystem::directory_iterator files(folder);
      return static_cast<long>(std::distance(begin(files), end(files)));
    };
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    return {count("/proc/self/fd"), count("/proc/self/task"), pages * (sysconf(_SC_PAGESIZE) / 1024)};
  }

  // Writes "<what> fds <n> threads <n> resident_kb <n>": the growth since then. A joined thread may be
  // visible for a moment longer.
  void PrintGrowth(const char* what) const {
    ProcessUsage now = Now();
    for (int i = 0; i < 100 && now.threads > threads; ++i, now = Now()) usleep(10'000);
    printf("%s fds %ld threads %ld resident_kb %ld\n", what, now.fds - fds, now.threads - threads,
           now.resident_kb - resident_kb);
  }
};
