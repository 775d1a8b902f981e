// Reads a trace of Perfetto's format back, field by field, for tests.
#pragma once

#include <string>
#include <vector>

namespace xsched::cli {

// What a trace says, a line for each packet: "12 ns track 3 begins request", "track 3 of 1: queue 1 …".
std::vector<std::string> Packets(const std::string& trace);

}  // namespace xsched::cli
