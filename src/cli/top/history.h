// The last values of something that is sampled regularly, and their picture. Pure.
#pragma once

#include <algorithm>
#include <deque>
#include <string>

#include "cli/shades.h"

namespace xsched::cli {

class History {
 public:
  explicit History(size_t length) : length_(length) {}

  void Add(double value) {
    values_.push_back(value);
    if (values_.size() > length_) values_.pop_front();
  }
  const std::deque<double>& values() const { return values_; }

  // One block per value, the oldest first, and only the last `width` of them. The tallest block stands for
  // `top` and more. The width is fixed: values that do not exist yet are blank.
  std::string Sparkline(double top, size_t width, bool ascii = false) const {
    const size_t count = std::min(width, values_.size());
    std::string line(std::min(width, length_) - count, ' ');
    for (size_t i = values_.size() - count; i < values_.size(); ++i)
      line += ShadeOf(top > 0 ? values_[i] / top : 0, ascii);
    return line;
  }

 private:
  size_t length_;
  std::deque<double> values_;
};

}  // namespace xsched::cli
