// The lines of top, the same on the screen and in batch mode. Pure.
#pragma once

#include <string>

#include "cli/top/rates.h"

namespace xsched::cli {

std::string TopSummary(const ipc::Status& status);
std::string TopHeading();
std::string TopRow(const QueueRates& entry);

}  // namespace xsched::cli
