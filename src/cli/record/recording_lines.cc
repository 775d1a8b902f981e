#include "cli/record/recording_lines.h"

#include "cli/record/line_reader.h"
#include "cli/record/recording_version.h"

namespace xsched::cli {

bool ReadRecordingLines(std::istream& input, const std::string& name, const TakeLine& read_head,
                        const TakeLine& read) {
  LineReader lines(input, name);
  bool has_ended = false;
  while (lines.Next()) {
    const nlohmann::json json = nlohmann::json::parse(lines.text(), nullptr, false);
    if (json.is_discarded()) {
      // The last line of a recording that was cut off.
      if (lines.is_open() && lines.number() > 1) break;
      throw CommandError(kExitFailed, fmt::format("{}: not JSON", lines.place()));
    }
    const JsonLine line(json, lines.place());
    if (lines.number() == 1) {
      line.Number("xsched_record", kOldestRecordingVersion, kRecordingVersion);
      if (!line.Has("recorded")) line.Fail("this is a load, and not a recording");
      read_head(line.Part("recorded"));
      continue;
    }
    if (has_ended) line.Fail("a line after the end");
    line.Time("t");
    has_ended = line.Has("end");
    read(line);
  }
  if (lines.number() == 0) throw CommandError(kExitFailed, fmt::format("{}: empty", name));
  return has_ended;
}

}  // namespace xsched::cli
