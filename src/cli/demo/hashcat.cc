#include "cli/demo/hashcat.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace xsched::cli {

using nlohmann::json;

std::vector<std::string> HashcatCommand(const std::string& folder) {
  std::string session = std::filesystem::path(folder).filename().string();
  std::vector<std::string> words = {"env", "XDG_DATA_HOME=" + folder, "hashcat", "--session", session};
  for (const char* word :
       {"--attack-mode=3", "--hash-type=0", "--force", "--opencl-device-types=1,2", "--workload-profile=1",
        "--potfile-disable", "--restore-disable", "--logfile-disable", "--self-test-disable", "--status",
        "--status-json", "--status-timer=1", "ffffffffffffffffffffffffffffffff", "?a?a?a?a?a?a?a?a"}) {
    words.emplace_back(word);
  }
  return words;
}

void HashcatLog::Add(std::string_view text, TimePoint now) {
  for (size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    unfinished_ += text.substr(0, end);
    json status = json::parse(unfinished_, nullptr, false);
    unfinished_.clear();
    if (!status.is_object() || !status.contains("progress")) continue;
    const json& progress = status["progress"];
    if (!progress.is_array() || progress.empty() || !progress[0].is_number()) continue;
    lines_.push_back({now, progress[0].get<double>()});
  }
  unfinished_ += text;
}

double CandidateRate(std::span<const HashcatProgress> lines) {
  if (lines.size() < 2) return 0;
  std::chrono::duration<double> time = lines.back().arrived - lines.front().arrived;
  return time.count() > 0 ? (lines.back().candidates - lines.front().candidates) / time.count() : 0;
}

}  // namespace xsched::cli
