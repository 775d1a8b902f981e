// The libraries and the socket of this installation, as a CDI specification needs them.
#pragma once

#include <string>

#include "cli/cdi/specification.h"
#include "cli/shims.h"

namespace xsched::cli {

// The whole specification but its devices. `kind`: "class" or "share". `route`, `is_wanted`: as FindShims has
// them. Warns of what engines or programs will stumble over. Throws CommandError.
CdiSpecification InstalledSpecification(const std::string& kind, const std::string& route,
                                        const PlatformFilter& is_wanted = IsHere);

// Writes the specification as a whole to `path`, or not at all; "": to standard output. Throws CommandError.
void WriteSpecification(const CdiSpecification& specification, const std::string& path);

}  // namespace xsched::cli
