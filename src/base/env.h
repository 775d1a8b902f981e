// Checked environment variables: an invalid value causes one clear warning, and the default is used.
#pragma once

#include <cstdint>
#include <optional>

namespace xsched {

// Unset or empty: nullopt, silently. Not a whole number in [min, max]: nullopt, and one warning per name.
std::optional<int64_t> EnvInt(const char* name, int64_t min, int64_t max);
// ON/1/TRUE/YES and OFF/0/FALSE/NO, in any case.
std::optional<bool> EnvBool(const char* name);
// Unset or empty: null.
const char* EnvText(const char* name);

}  // namespace xsched
