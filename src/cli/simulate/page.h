// The outcomes of several schemes as one web page, which needs nothing else: plots (SVG) and the figures as a
// table. It follows the reader's choice of light or dark.
#pragma once

#include <span>
#include <string>

#include "cli/simulate/outcome.h"

namespace xsched::cli {

std::string Page(std::span<const Outcome> outcomes);

}  // namespace xsched::cli
