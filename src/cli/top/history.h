// The last values of something that is sampled regularly, and their picture. Pure.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

namespace xsched::cli {

class History {
 public:
  explicit History(size_t length) : length_(length) {}

  void Add(double value) {
    values_.push_back(value);
    if (values_.size() > length_) values_.pop_front();
  }
  const std::deque<double>& values() const { return values_; }

  // One block per value, the oldest first. The tallest block stands for `top` and more. The width is fixed:
  // values that do not exist yet are blank.
  std::string Sparkline(double top) const {
    static constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    std::string line(length_ - values_.size(), ' ');
    for (double value : values_) {
      double height = top > 0 ? std::clamp(value / top, 0.0, 1.0) : 0.0;
      line += kBlocks[static_cast<size_t>(std::ceil(height * 8))];
    }
    return line;
  }

 private:
  size_t length_;
  std::deque<double> values_;
};

}  // namespace xsched::cli
