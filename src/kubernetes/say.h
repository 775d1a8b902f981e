// What the agent says beside its answers: one line on stderr, which is the container's log.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "kubernetes/text.h"

namespace xsched::kubernetes {

inline void Say(const std::string& text) { fmt::print(stderr, "xsched-kubernetes: {}\n", OneLine(text)); }

}  // namespace xsched::kubernetes
