// Reads a recording line by line (docs/recording.md).
#pragma once

#include <functional>
#include <istream>
#include <string>

#include "cli/simulate/json_line.h"

namespace xsched::cli {

using TakeLine = std::function<void(const JsonLine&)>;

// Calls read_head(recorded) with what the first line says of the whole, and read(line) for each line behind
// it. Throws CommandError with the place of what is wrong. True: the recording has its end; otherwise it was
// cut off.
bool ReadRecordingLines(std::istream& input, const std::string& name, const TakeLine& read_head,
                        const TakeLine& read);

}  // namespace xsched::cli
