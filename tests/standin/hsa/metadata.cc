#include "metadata.h"

#include <cstring>

namespace standin_hsa {
namespace {

struct Value {
  uint64_t number = 0;
  std::string text;
  std::vector<Value> elements;
  std::map<std::string, Value> members;

  const Value& operator[](const char* member) const {
    static const auto* const none = new Value;
    auto it = members.find(member);
    return it == members.end() ? *none : it->second;
  }
};

class Reader {
 public:
  explicit Reader(std::span<const unsigned char> bytes) : bytes_(bytes) {}

  // Returns an empty value if the document ends early or is not understood. All later values are then empty
  // as well.
  Value Read() {
    const unsigned tag = static_cast<unsigned>(Number(1));
    Value value;
    if (tag <= 0x7f) {
      value.number = tag;
    } else if (tag <= 0x8f) {
      Members(tag & 0x0f, &value);
    } else if (tag <= 0x9f) {
      Elements(tag & 0x0f, &value);
    } else if (tag <= 0xbf) {
      value.text = Text(tag & 0x1f);
    } else if (tag == 0xc2 || tag == 0xc3) {
      value.number = tag & 1;
    } else if (tag >= 0xcc && tag <= 0xd3) {
      value.number = Number(size_t{1} << (tag & 3));  // 0xcc…: unsigned, 0xd0…: signed; of 1, 2, 4, 8 bytes
    } else if (tag >= 0xd9 && tag <= 0xdb) {
      value.text = Text(Number(size_t{1} << (tag - 0xd9)));
    } else if (tag == 0xdc || tag == 0xdd) {
      Elements(Number(tag == 0xdc ? 2 : 4), &value);
    } else if (tag == 0xde || tag == 0xdf) {
      Members(Number(tag == 0xde ? 2 : 4), &value);
    } else if (tag != 0xc0) {
      bytes_ = {};
    }
    return value;
  }

 private:
  uint64_t Number(size_t size) {
    uint64_t number = 0;
    if (bytes_.size() < size) {
      bytes_ = {};
      return 0xc0;  // nil
    }
    for (size_t i = 0; i < size; ++i) number = number << 8 | bytes_[i];
    bytes_ = bytes_.subspan(size);
    return number;
  }
  std::string Text(uint64_t size) {
    if (bytes_.size() < size) {
      bytes_ = {};
      return {};
    }
    std::string text(reinterpret_cast<const char*>(bytes_.data()), size);
    bytes_ = bytes_.subspan(size);
    return text;
  }
  void Elements(uint64_t count, Value* value) {
    for (uint64_t i = 0; i < count && !bytes_.empty(); ++i) value->elements.push_back(Read());
  }
  void Members(uint64_t count, Value* value) {
    for (uint64_t i = 0; i < count && !bytes_.empty(); ++i) {
      std::string name = Read().text;
      value->members[name] = Read();
    }
  }

  std::span<const unsigned char> bytes_;
};

}  // namespace

std::map<std::string, std::vector<Argument>> ReadKernelArguments(std::span<const unsigned char> document) {
  std::map<std::string, std::vector<Argument>> kernels;
  const Value root = Reader(document).Read();
  for (const Value& kernel : root["amdhsa.kernels"].elements) {
    std::vector<Argument>& arguments = kernels[kernel[".symbol"].text];
    for (const Value& argument : kernel[".args"].elements) {
      arguments.push_back({argument[".name"].text, argument[".value_kind"].text, argument[".offset"].number,
                           argument[".size"].number});
    }
  }
  return kernels;
}

}  // namespace standin_hsa
