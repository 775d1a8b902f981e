#include "cli/record/recording_lines.h"

namespace xsched::cli {

bool ReadRecordingLines(std::istream& input, const std::string& name, const TakeLine& read_head,
                        const TakeLine& read) {
  size_t number = 0;
  bool has_ended = false;
  for (std::string text; std::getline(input, text);) {
    ++number;
    const std::string place = fmt::format("{}:{}", name, number);
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_discarded()) {
      // The last line of a recording that was cut off.
      if (input.eof() && number > 1) break;
      throw CommandError(kExitFailed, fmt::format("{}: not JSON", place));
    }
    const JsonLine line(json, place);
    if (number == 1) {
      line.Number("xsched_record", 1, 1);
      if (!line.Has("recorded")) line.Fail("this is a load, and not a recording");
      read_head(line.Part("recorded"));
      continue;
    }
    if (has_ended) line.Fail("a line after the end");
    line.Time("t");
    has_ended = line.Has("end");
    read(line);
  }
  if (number == 0) throw CommandError(kExitFailed, fmt::format("{}: empty", name));
  return has_ended;
}

}  // namespace xsched::cli
