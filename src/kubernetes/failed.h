#pragma once

#include <string>

#include "base/result.h"

namespace xsched::kubernetes {

inline Error Failed(const std::string& text) { return Error::Make("%s", text.c_str()); }

}  // namespace xsched::kubernetes
