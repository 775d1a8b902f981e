// Reads a trace in Chrome's format (JSON), as PyTorch's profiler writes it: slices, points and arrows of
// threads, and how much memory is allocated. Other kinds of events, and arguments, are skipped.
//
// The file is read piece by piece, and only what is shown is kept: 24 bytes for each slice, and each name
// once.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/trace/nested_slices.h"

namespace xsched::cli {

// Times are Unix times.
struct ChromeTrace {
  struct Point {
    Duration at;
    uint32_t name;
  };
  // One end of an arrow, at the slice that is there then. Ends with the same number belong together.
  struct ArrowEnd {
    Duration at;
    uint64_t arrow;
  };
  struct Thread {
    std::string name;
    std::vector<Slice> slices;
    std::vector<Point> points;
    std::vector<ArrowEnd> arrows;
  };
  struct Process {
    std::string name;
    std::string label;  // "CPU", "GPU 0"
    std::map<std::string, Thread> threads;
  };
  struct Memory {
    Duration at;
    int64_t bytes;
  };

  // By their numbers, which may be words.
  std::map<std::string, Process> processes;
  std::map<std::pair<int64_t, int64_t>, std::vector<Memory>> memory;  // by the device's type and number
  std::vector<std::string> names;                                     // of slices, points and categories
};

// Throws CommandError with the place of what is wrong. `name`: the file's.
ChromeTrace ReadChromeTrace(std::istream& input, const std::string& name);

}  // namespace xsched::cli
