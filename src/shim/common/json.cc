#include "shim/common/json.h"

namespace xsched::shim {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The number of a hexadecimal digit; -1: it is none.
int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// True for characters of numbers and of the words true, false and null.
bool IsWordCharacter(char c) {
  return Digit(c) >= 0 || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

size_t DigitsAt(std::string_view text, size_t at) {
  size_t count = 0;
  while (at + count < text.size() && text[at + count] >= '0' && text[at + count] <= '9') ++count;
  return count;
}

bool IsNumber(std::string_view word) {
  size_t at = !word.empty() && word[0] == '-' ? 1 : 0;
  const size_t whole = DigitsAt(word, at);
  if (whole == 0 || (whole > 1 && word[at] == '0')) return false;
  at += whole;
  if (at < word.size() && word[at] == '.') {
    const size_t fraction = DigitsAt(word, at + 1);
    if (fraction == 0) return false;
    at += 1 + fraction;
  }
  if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
    ++at;
    if (at < word.size() && (word[at] == '+' || word[at] == '-')) ++at;
    const size_t exponent = DigitsAt(word, at);
    if (exponent == 0) return false;
    at += exponent;
  }
  return at == word.size();
}

}  // namespace

bool JsonReader::Fail() {
  ok_ = false;
  return false;
}

char JsonReader::Peek() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  return at_ < text_.size() ? text_[at_] : '\0';
}

bool JsonReader::Accept(char wanted) {
  if (Peek() != wanted) return false;
  ++at_;
  return true;
}

bool JsonReader::Follows(char wanted) {
  if (at_ == text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

JsonReader::Kind JsonReader::Next() {
  if (!ok_) return Kind::kNothing;
  const char c = Peek();
  if (c == '{') return Kind::kObject;
  if (c == '[') return Kind::kArray;
  if (c == '"') return Kind::kText;
  return IsWordCharacter(c) ? Kind::kOther : Kind::kNothing;
}

void JsonReader::Enter(char bracket) {
  if (!ok_) return;
  if (depth_ == kMaxDepth || !Accept(bracket)) {
    Fail();
    return;
  }
  ++depth_;
  first_ = true;
}

bool JsonReader::NextItem(char bracket) {
  if (!ok_) return false;
  const bool first = first_;
  first_ = false;
  if (Accept(bracket)) {
    --depth_;
    return false;
  }
  return first || Accept(',') || Fail();
}

bool JsonReader::NextKey(JsonText* key) {
  if (!NextItem('}')) return false;
  return ReadText(key) && (Accept(':') || Fail());
}

bool JsonReader::NextElement() { return NextItem(']'); }

bool JsonReader::Append(JsonText* out, char c) {
  // A name that contains a zero would be taken for a shorter one.
  if (c == '\0' || out->size == sizeof out->text) return Fail();
  out->text[out->size++] = c;
  return true;
}

bool JsonReader::AppendCodePoint(JsonText* out, unsigned code) {
  const auto last = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return Append(out, static_cast<char>(code));
  if (code < 0x800) return Append(out, static_cast<char>(0xc0 | code >> 6)) && Append(out, last(0));
  if (code < 0x10000)
    return Append(out, static_cast<char>(0xe0 | code >> 12)) && Append(out, last(6)) && Append(out, last(0));
  return Append(out, static_cast<char>(0xf0 | code >> 18)) && Append(out, last(12)) && Append(out, last(6)) &&
         Append(out, last(0));
}

bool JsonReader::ReadCodeUnit(unsigned* out) {
  *out = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = at_ < text_.size() ? Digit(text_[at_]) : -1;
    if (digit < 0) return Fail();
    *out = *out * 16 + static_cast<unsigned>(digit);
    ++at_;
  }
  return true;
}

// Reads an escape sequence after its backslash.
bool JsonReader::ReadEscape(JsonText* out) {
  if (at_ == text_.size()) return Fail();
  switch (const char c = text_[at_++]) {
    case '"':
    case '\\':
    case '/':
      return Append(out, c);
    case 'b':
      return Append(out, '\b');
    case 'f':
      return Append(out, '\f');
    case 'n':
      return Append(out, '\n');
    case 'r':
      return Append(out, '\r');
    case 't':
      return Append(out, '\t');
    case 'u':
      break;
    default:
      return Fail();
  }
  unsigned code = 0;
  if (!ReadCodeUnit(&code)) return false;
  if (code >= 0xdc00 && code < 0xe000) return Fail();
  if (code >= 0xd800 && code < 0xdc00) {
    unsigned low = 0;
    if (!Follows('\\') || !Follows('u')) return Fail();
    if (!ReadCodeUnit(&low)) return false;
    if (low < 0xdc00 || low >= 0xe000) return Fail();
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  return AppendCodePoint(out, code);
}

bool JsonReader::ReadText(JsonText* out) {
  out->size = 0;
  if (!ok_) return false;
  if (!Accept('"')) return Fail();
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (c == '\\') {
      if (!ReadEscape(out)) return false;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      return Fail();
    } else if (!Append(out, c)) {
      return false;
    }
  }
  return Fail();
}

bool JsonReader::SkipWord() {
  const size_t begin = at_;
  while (at_ < text_.size() && IsWordCharacter(text_[at_])) ++at_;
  const std::string_view word(text_.data() + begin, at_ - begin);
  return word == "true" || word == "false" || word == "null" || IsNumber(word) || Fail();
}

void JsonReader::Skip() {
  JsonText text;
  // As deep as Enter allows.
  switch (Next()) {
    case Kind::kObject:
      for (EnterObject(); NextKey(&text);) Skip();
      break;
    case Kind::kArray:
      for (EnterArray(); NextElement();) Skip();
      break;
    case Kind::kText:
      ReadText(&text);
      break;
    case Kind::kOther:
      SkipWord();
      break;
    case Kind::kNothing:
      Fail();
      break;
  }
}

bool JsonReader::AtEnd() { return ok_ && depth_ == 0 && Peek() == '\0' && at_ == text_.size(); }

int JsonReader::line() const {
  int line = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
  return line;
}

}  // namespace xsched::shim
