#include "cli/shims.h"

#include <fmt/format.h>

#include "cli/locations.h"
#include "cli/reach.h"
#include "cli/warn.h"

namespace xsched::cli {
namespace {

void Add(FoundShims& shims, const Platform& platform, bool (*can_be_named)(const std::string&)) {
  const std::optional<std::string> shim = FindLibrary(platform.shim);
  if (!shim) {
    shims.missing.push_back(platform.shim);
  } else if (!can_be_named(*shim)) {
    shims.unloadable.push_back(*shim);
  } else {
    shims.found.push_back({*shim, platform.layers == nullptr ? "" : platform.layers});
  }
}

// A preloaded library must not need a sanitizer that the program lacks: the program would end at its start.
#ifdef XSCHED_SANITIZED
constexpr bool kPreloads = false;
#else
constexpr bool kPreloads = true;
#endif

}  // namespace

bool IsHere(const Platform& platform) { return platform.is_here(); }

FoundShims FindShims(const std::string& route, const PlatformFilter& is_wanted) {
  FoundShims shims;
  for (const Platform* platform : PlatformsWithShim()) {
    const bool takes_layers = platform->layers != nullptr;
    if (!takes_layers && !kPreloads) continue;
    // All child processes load the preloaded libraries. So only useful ones are added.
    if (!is_wanted(*platform)) continue;
    Add(shims, *platform, takes_layers && route != "preload" ? CanBeLayer : CanBePreloaded);
  }
  return shims;
}

void WarnOfOthers(const FoundShims& shims) {
  for (const std::string& name : shims.missing)
    Warn(fmt::format("{} is not installed: its platform's programs run unscheduled", name));
  for (const std::string& path : shims.unloadable) {
    Warn(fmt::format(
        "{}: lists of libraries are separated by spaces and colons, so this path cannot be in one: its "
        "platform's programs run unscheduled",
        path));
  }
}

}  // namespace xsched::cli
