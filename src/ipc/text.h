// Texts in messages: arrays of fixed size that end with a NUL.
#pragma once

#include <string.h>

#include <string_view>

namespace xsched::ipc {

// What is too long is cut off. REQUIRES: `to` is zero, as in a message that is `{}`.
template <size_t kSize>
void SetText(char (&to)[kSize], std::string_view from) {
  memcpy(to, from.data(), from.size() < kSize ? from.size() : kSize - 1);
}

// From another array, whose NUL is not taken for granted.
template <size_t kSize, size_t kFromSize>
void SetText(char (&to)[kSize], const char (&from)[kFromSize]) {
  SetText(to, std::string_view(from, strnlen(from, kFromSize)));
}

template <size_t kSize>
void EndText(char (&text)[kSize]) {
  text[kSize - 1] = '\0';
}

}  // namespace xsched::ipc
