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

// Of a peer's text: makes sure that it ends, and that it moves no cursor and changes no color where it is
// printed. Control characters become '?', also those that UTF-8 writes in two bytes.
template <size_t kSize>
void EndText(char (&text)[kSize]) {
  text[kSize - 1] = '\0';
  for (size_t i = 0; text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(text[i + 1]);
    const bool in_two = byte == 0xc2 && next >= 0x80 && next <= 0x9f;
    if (byte < ' ' || byte == 0x7f || in_two) text[i] = '?';
    if (in_two) text[i + 1] = '?';
  }
}

}  // namespace xsched::ipc
