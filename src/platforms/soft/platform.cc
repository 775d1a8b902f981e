// The software device, which none of XSched 1.2's numbers stands for. Its programs use XSched's API.
#include "cli/platform.h"

namespace xsched::cli::soft {

const Platform& Get() {
  static const Platform platform = {.id = "soft", .name = "software", .number = kPlatformUnknown};
  return platform;
}

}  // namespace xsched::cli::soft
