#include "cli/doctor/report.h"

#include <fmt/format.h>

#include "cli/json_text.h"

namespace xsched::cli {
namespace {

const char* Word(Report::Kind kind) {
  switch (kind) {
    case Report::Kind::kOk:
      return "ok";
    case Report::Kind::kNote:
      return "note";
    case Report::Kind::kProblem:
      return "problem";
  }
  return "?";
}

}  // namespace

void Report::Obstacle(const std::string& about, const std::string& text) {
  Problem(about, text);
  if (obstacle_.empty()) obstacle_ = about + ": " + text;
}

std::string Report::Text() const {
  std::string text;
  for (const Finding& finding : findings_) {
    text += fmt::format("{:<9} {:<11} {}\n", fmt::format("[{}]", Word(finding.kind)), finding.about,
                        finding.text);
  }
  return text + (scheduled() ? "scheduled: yes, with xsched run -- program\n" : "scheduled: no\n");
}

std::string Report::Json() const {
  nlohmann::json all = {{"scheduled", scheduled()}, {"findings", nlohmann::json::array()}};
  if (!scheduled()) all["obstacle"] = obstacle_;
  for (const Finding& finding : findings_) {
    all["findings"].push_back(
        {{"about", finding.about}, {"kind", Word(finding.kind)}, {"text", finding.text}});
  }
  return JsonText(all) + "\n";
}

}  // namespace xsched::cli
