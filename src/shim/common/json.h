// Reads JSON (RFC 8259) item by item, for code that runs in foreign processes: allocates nothing, and stops
// at the first fault. It checks what it reads. AtEnd() checks that nothing follows the outermost value.
//
//   JsonReader json(text);
//   JsonText key;
//   for (json.EnterObject(); json.NextKey(&key);) { … one of EnterObject, EnterArray, ReadText, Skip … }
//   if (!json.ok()) …
#pragma once

#include <cstddef>
#include <string_view>

namespace xsched::shim {

// A string's value, in UTF-8. One that does not fit is a fault.
struct JsonText {
  char text[256];
  size_t size = 0;
  std::string_view view() const { return {text, size}; }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  enum class Kind { kObject, kArray, kText, kOther, kNothing };
  // The kind of the next value. kNothing: there is no value, or there was a fault.
  Kind Next();

  void EnterObject() { Enter('{'); }
  // Moves on to the next member's value. False: the object has ended, or there was a fault.
  bool NextKey(JsonText* key);
  void EnterArray() { Enter('['); }
  // Moves on to the next element. False: the array has ended, or there was a fault.
  bool NextElement();
  bool ReadText(JsonText* out);
  // Skips one value of any kind.
  void Skip();

  bool ok() const { return ok_; }
  // The outermost value has been read, and nothing follows.
  bool AtEnd();
  // The line of the first fault, counted from 1.
  int line() const;

 private:
  static constexpr int kMaxDepth = 64;

  void Enter(char bracket);
  // After an element or before the first; false: `bracket` was there, and the object or array has ended.
  bool NextItem(char bracket);
  bool Fail();
  char Peek();                // past white space; 0: the end
  bool Accept(char wanted);   // past white space
  bool Follows(char wanted);  // at once
  bool ReadEscape(JsonText* out);
  bool ReadCodeUnit(unsigned* out);
  bool Append(JsonText* out, char c);
  bool AppendCodePoint(JsonText* out, unsigned code);
  bool SkipWord();

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool first_ = false;  // an object or array has just been entered
  bool ok_ = true;
};

}  // namespace xsched::shim
