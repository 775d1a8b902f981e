#include "cli/trace/testing/packets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

namespace xsched::cli {
namespace {

struct Field {
  uint64_t number;
  uint64_t value;
  std::string bytes;
};

uint64_t TakeVarint(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(from.at(0));
    from.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

std::vector<Field> FieldsOf(std::string_view bytes) {
  std::vector<Field> fields;
  while (!bytes.empty()) {
    const uint64_t tag = TakeVarint(bytes);
    if ((tag & 7) == 1) {
      uint64_t value = 0;
      for (size_t byte = 0; byte < 8; ++byte)
        value |= uint64_t{static_cast<unsigned char>(bytes.at(byte))} << (8 * byte);
      bytes.remove_prefix(8);
      fields.push_back({tag >> 3, value, ""});
      continue;
    }
    Field field{tag >> 3, TakeVarint(bytes), ""};
    if ((tag & 7) == 2) {
      field.bytes = bytes.substr(0, field.value);
      bytes.remove_prefix(field.value);
    } else {
      EXPECT_EQ(tag & 7, 0u);
    }
    fields.push_back(field);
  }
  return fields;
}

}  // namespace

std::vector<std::string> Packets(const std::string& trace) {
  std::vector<std::string> lines;
  for (const Field& packet : FieldsOf(trace)) {
    EXPECT_EQ(packet.number, 1u);
    std::string line;
    uint64_t sequence = 0;
    for (const Field& part : FieldsOf(packet.bytes)) {
      if (part.number == 8) line = fmt::format("{} ns ", part.value) + line;
      if (part.number == 10) sequence = part.value;
      if (part.number != 11 && part.number != 60) continue;
      const bool is_event = part.number == 11;
      static constexpr const char* kTypes[] = {"", "begins", "ends", "point", "counts"};
      std::string type;
      std::string name;
      std::string notes;
      std::string owner;
      uint64_t track = 0;
      for (const Field& field : FieldsOf(part.bytes)) {
        if (is_event && field.number == 9) type = kTypes[field.value];
        if (is_event && field.number == 11) track = field.value;
        if (is_event && field.number == 23) name = " " + field.bytes;
        if (is_event && field.number == 22) notes += fmt::format(", category {}", field.bytes);
        if (is_event && field.number == 30) name = fmt::format(" {}", static_cast<int64_t>(field.value));
        if (is_event && field.number == 47) notes += fmt::format(", arrow {}", field.value);
        if (is_event && field.number == 4) {
          const std::vector<Field> note = FieldsOf(field.bytes);
          notes += fmt::format(", {} {}", note[0].bytes, static_cast<int64_t>(note[1].value));
        }
        if (!is_event && field.number == 1) track = field.value;
        if (!is_event && field.number == 2) name = ": " + field.bytes;
        if (!is_event && field.number == 5) owner = fmt::format(" of {}", field.value);
        if (!is_event && field.number == 8) type = "counter";
        if (!is_event && field.number == 3) {
          const std::vector<Field> process = FieldsOf(field.bytes);
          type = fmt::format("process {} {}", process[0].value, process[1].bytes);
        }
      }
      line += fmt::format("track {}{}{}{}{}{}", track, owner, type.empty() ? "" : " ", type, name, notes);
    }
    EXPECT_EQ(sequence, 1u);
    lines.push_back(line);
  }
  return lines;
}

}  // namespace xsched::cli
