// The demo's result as a web page that needs nothing else. Pure.
#pragma once

#include <span>
#include <string>

#include "cli/demo/demo_chart.h"

namespace xsched::cli {

struct BusyRates {
  double native = 0;  // candidates per second
  double scheduled = 0;

  double kept() const { return native > 0 ? scheduled / native : 0; }
};

// `series`: of the urgent task alone, natively beside the busy program, and under XSched.
std::string DemoPage(std::span<const LatencySeries> series, const BusyRates& busy);

}  // namespace xsched::cli
