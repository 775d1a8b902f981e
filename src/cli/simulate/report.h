// The outcomes of several schemes, side by side: as text and as JSON. (The web page: page.h.)
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "cli/simulate/outcome.h"

namespace xsched::cli {

std::string OutcomesText(std::span<const Outcome> outcomes);
nlohmann::json OutcomesJson(std::span<const Outcome> outcomes);

}  // namespace xsched::cli
