// The demo's busy program: hashcat. Its search never succeeds, and it prints its progress once a second.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xsched::cli {

// Its files are in `folder`. Its session is named after the folder, because two running hashcats cannot have
// the same session.
std::vector<std::string> HashcatCommand(const std::string& folder);

struct HashcatProgress {
  std::chrono::steady_clock::time_point arrived;  // its own times are whole seconds
  double candidates = 0;
};

// The progress that it has printed so far.
class HashcatLog {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Adds more of its output. Lines may come in parts, and other lines are ignored.
  void Add(std::string_view text, TimePoint now);
  const std::vector<HashcatProgress>& lines() const { return lines_; }

 private:
  std::string unfinished_;
  std::vector<HashcatProgress> lines_;
};

// Candidates per second from the first line to the last; 0 with fewer than two.
double CandidateRate(std::span<const HashcatProgress> lines);

}  // namespace xsched::cli
