// Adds up times that others have written: a recording may claim anything.
#pragma once

#include "base/clock.h"

namespace xsched::cli {

// The longest Duration where the sum would be longer. REQUIRES: neither is below 0.
constexpr Duration BoundedSum(Duration one, Duration other) {
  return one > Duration::max() - other ? Duration::max() : one + other;
}

}  // namespace xsched::cli
