// The demo's busy program: hashcat, which searches for what it will not find and says once a second how far
// it is.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xsched::cli {

// Its session (a name that only one running hashcat may have) and its files are `folder`'s.
std::vector<std::string> HashcatCommand(const std::string& folder);

struct HashcatProgress {
  std::chrono::steady_clock::time_point arrived;  // its own times are whole seconds
  double candidates = 0;
};

// What it has said so far.
class HashcatLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // More of its output, as it comes: lines may be in parts, and are other than about progress.
  void Add(std::string_view text, TimePoint now);
  const std::vector<HashcatProgress>& lines() const { return lines_; }

 private:
  std::string unfinished_;
  std::vector<HashcatProgress> lines_;
};

// Candidates per second from the first line to the last; 0 with fewer than two.
double CandidateRate(std::span<const HashcatProgress> lines);

}  // namespace xsched::cli
