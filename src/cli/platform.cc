#include "cli/platform.h"

#include <algorithm>
#include <iterator>

#include "cli/platform_list.h"

namespace xsched::cli {
namespace {

template <typename Predicate>
const Platform* FindIf(Predicate&& is_it) {
  for (const Platform* platform : Platforms()) {
    if (is_it(*platform)) return platform;
  }
  return nullptr;
}

}  // namespace

const std::vector<const Platform*>& Platforms() {
  static const std::vector<const Platform*> all = PlatformList();
  return all;
}

std::vector<const Platform*> PlatformsWithShim() {
  std::vector<const Platform*> with_shim;
  std::copy_if(Platforms().begin(), Platforms().end(), std::back_inserter(with_shim),
               [](const Platform* platform) { return platform->shim != nullptr; });
  std::stable_partition(with_shim.begin(), with_shim.end(),
                        [](const Platform* platform) { return platform->layers != nullptr; });
  return with_shim;
}

std::vector<std::string> NamesOfPlatforms(bool with_layers) {
  std::vector<std::string> names;
  for (const Platform* platform : PlatformsWithShim()) {
    if ((platform->layers != nullptr) == with_layers) names.push_back(platform->name);
  }
  return names;
}

std::vector<std::string> CalibratedPlatforms() {
  std::vector<std::string> ids;
  for (const Platform* platform : Platforms()) {
    if (platform->open_work_device != nullptr) ids.emplace_back(platform->id);
  }
  return ids;
}

const Platform* FindPlatform(uint32_t number) {
  return FindIf(
      [number](const Platform& platform) { return static_cast<uint32_t>(platform.number) == number; });
}

const Platform* FindPlatformById(const std::string& id) {
  return FindIf([&id](const Platform& platform) { return platform.id == id; });
}

}  // namespace xsched::cli
