// The lines of a recording or of a load, without blank ones.
#pragma once

#include <cstddef>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace xsched::cli {

class LineReader {
 public:
  // `name`: for messages.
  LineReader(std::istream& input, const std::string& name) : input_(input), name_(name), buffer_(kLongest) {}

  // False: there is none left. Throws CommandError.
  bool Next();
  std::string_view text() const { return {buffer_.data(), length_}; }
  // From 1 on. The first one may be blank. 0: the file is empty.
  size_t number() const { return number_; }
  std::string place() const;
  // It has no end of line, so it may be cut off.
  bool is_open() const { return input_.eof(); }

 private:
  // Any other file may be one line of any length.
  static constexpr size_t kLongest = size_t{1} << 20;

  std::istream& input_;
  const std::string& name_;
  std::vector<char> buffer_;
  size_t length_ = 0;
  size_t number_ = 0;
};

}  // namespace xsched::cli
