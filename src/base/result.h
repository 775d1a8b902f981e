// Errors as values: what failed and why, in one line that helps a user.
//
// Fit for foreign processes: no exceptions, no allocation, no libstdc++ at run time.
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utility>
#include <variant>

namespace xsched {

class [[nodiscard]] Error {
 public:
  // `format` is printf's. Say what failed, where, and what to do about it.
  [[gnu::format(printf, 1, 2)]] static Error Make(const char* format, ...) {
    Error error;
    va_list args;
    va_start(args, format);
    error.EndBetweenCharacters(vsnprintf(error.text_, sizeof error.text_, format, args));
    va_end(args);
    return error;
  }
  // As Make, followed by ": " and the text of `errnum`.
  [[gnu::format(printf, 2, 3)]] static Error FromErrno(int errnum, const char* format, ...) {
    Error error;
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(error.text_, sizeof error.text_, format, args);
    va_end(args);
    error.errnum_ = errnum;
    size_t used = strlen(error.text_);
    char description[64];
    wanted += snprintf(error.text_ + used, sizeof error.text_ - used, ": %s",
                       strerror_r(errnum, description, sizeof description));
    error.EndBetweenCharacters(wanted);
    return error;
  }

  const char* text() const { return text_; }
  int errnum() const { return errnum_; }  // 0: not the error of a system call

 private:
  // Of a text that would be `wanted` bytes long: removes what is left of a UTF-8 character that was cut off.
  void EndBetweenCharacters(int wanted) {
    if (wanted < 0 || static_cast<size_t>(wanted) < sizeof text_) return;
    const size_t length = strlen(text_);
    size_t last = length;  // the beginning of the last character
    while (last > 0 && length - last < 4 && (static_cast<unsigned char>(text_[--last]) & 0xc0) == 0x80) {
    }
    const auto first = static_cast<unsigned char>(text_[last]);
    const size_t whole = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (length - last < whole) text_[last] = '\0';
  }

  char text_[244] = "";
  int errnum_ = 0;
};

struct Ok {};

template <typename T = Ok>
class [[nodiscard]] Result {
 public:
  Result() requires std::is_same_v<T, Ok> : value_(std::in_place_index<0>) {}
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  explicit operator bool() const { return value_.index() == 0; }
  // REQUIRES: the result holds a value.
  T& operator*() { return *std::get_if<0>(&value_); }
  T* operator->() { return std::get_if<0>(&value_); }
  // REQUIRES: the result holds an error.
  const Error& error() const { return *std::get_if<1>(&value_); }

 private:
  std::variant<T, Error> value_;
};

}  // namespace xsched
