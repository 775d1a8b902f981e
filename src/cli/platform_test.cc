#include "cli/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cli/queue_text.h"

namespace xsched::cli {
namespace {

TEST(Platforms, have_ids_names_and_numbers_of_their_own) {
  std::set<std::string> ids;
  std::set<std::string> names;
  std::set<XPlatform> numbers;
  for (const Platform* platform : Platforms()) {
    EXPECT_TRUE(ids.insert(platform->id).second) << platform->id;
    EXPECT_TRUE(names.insert(platform->name).second) << platform->name;
    EXPECT_TRUE(numbers.insert(platform->number).second) << platform->number;
    EXPECT_EQ(FindPlatformById(platform->id), platform);
    EXPECT_EQ(FindPlatform(static_cast<uint32_t>(platform->number)), platform);
  }
  EXPECT_GE(ids.size(), 4u);
  EXPECT_EQ(FindPlatformById("none"), nullptr);
  EXPECT_EQ(FindPlatform(4711), nullptr);
}

TEST(Platforms, whose_loaders_take_layers_come_before_those_that_are_preloaded) {
  const std::vector<const Platform*> platforms = PlatformsWithShim();
  auto takes_layers = [](const Platform* platform) { return platform->layers != nullptr; };
  EXPECT_TRUE(std::is_partitioned(platforms.begin(), platforms.end(), takes_layers));
  EXPECT_GE(std::count_if(platforms.begin(), platforms.end(), takes_layers), 1);
  for (const Platform* platform : Platforms()) {
    EXPECT_EQ(std::count(platforms.begin(), platforms.end(), platform), platform->shim != nullptr)
        << platform->id;
  }
}

// What the tools call where there is a shim.
TEST(Platforms, with_a_shim_are_found_and_examined) {
  for (const Platform* platform : PlatformsWithShim()) {
    EXPECT_NE(platform->is_here, nullptr) << platform->id;
    EXPECT_NE(platform->examine, nullptr) << platform->id;
    EXPECT_FALSE(platform->libraries.empty()) << platform->id;
  }
}

TEST(Platforms, have_variables_of_their_own) {
  for (const Platform* platform : Platforms()) {
    for (const EnvironmentVariable& variable : platform->variables) {
      EXPECT_THAT(variable.name, ::testing::StartsWith("XSCHED_")) << platform->id;
      EXPECT_NE(variable.manual, "") << variable.name;
      EXPECT_EQ(std::ranges::count(EnvironmentVariables(), std::string(variable.name),
                                   [](const EnvironmentVariable& known) { return std::string(known.name); }),
                1)
          << variable.name;
    }
  }
}

TEST(Platforms, are_called_by_their_names_and_those_of_newer_builds_by_their_numbers) {
  EXPECT_EQ(PlatformText(kPlatformCUDA), "CUDA");
  EXPECT_EQ(PlatformText(kPlatformHIP), "HIP");
  EXPECT_EQ(PlatformText(kPlatformOpenCL), "OpenCL");
  EXPECT_EQ(PlatformText(kPlatformUnknown), "software");
  EXPECT_EQ(PlatformText(4711), "platform 4711");
}

}  // namespace
}  // namespace xsched::cli
