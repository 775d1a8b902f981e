// Reads a recording line by line (docs/recording.md).
#pragma once

#include <functional>
#include <istream>
#include <string>

#include "cli/simulate/json_line.h"

namespace xsched::cli {

// Calls read(line) for each line behind the first one. Throws CommandError with the place of what is wrong.
// True: the recording has its end; otherwise it was cut off.
bool ReadRecordingLines(std::istream& input, const std::string& name,
                        const std::function<void(const JsonLine&)>& read);

}  // namespace xsched::cli
