// How long tests wait for what must come.
#pragma once

#include <chrono>

namespace xsched::kubernetes::testing {

inline constexpr std::chrono::seconds kPatience(20);

}  // namespace xsched::kubernetes::testing
