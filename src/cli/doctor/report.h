// The doctor's report: its lines, and whether a program would be scheduled.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

class Report {
 public:
  enum class Kind { kOk, kNote, kProblem };

  void Ok(const std::string& about, const std::string& text) { Add(about, Kind::kOk, text); }
  // A fact that is neither good nor bad.
  void Note(const std::string& about, const std::string& text) { Add(about, Kind::kNote, text); }
  // Something is wrong, but a program is scheduled nevertheless.
  void Problem(const std::string& about, const std::string& text) { Add(about, Kind::kProblem, text); }
  // A program is not scheduled because of this.
  void Obstacle(const std::string& about, const std::string& text);

  bool scheduled() const { return obstacle_.empty(); }
  // The first obstacle; empty: there is none.
  const std::string& obstacle() const { return obstacle_; }

  std::string Text() const;
  std::string Json() const;

 private:
  struct Finding {
    std::string about;
    Kind kind;
    std::string text;
  };
  void Add(const std::string& about, Kind kind, const std::string& text) {
    findings_.push_back({about, kind, text});
  }

  std::vector<Finding> findings_;
  std::string obstacle_;
};

}  // namespace xsched::cli
