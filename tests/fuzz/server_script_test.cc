// The fuzzers' entry points with fixed random scripts, for builds without libFuzzer.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/testing/tries.h"
#include "fuzz/server_script.h"

namespace xsched::server::testing {
namespace {

constexpr int kSeed = 20240229;

template <typename Run>
void RunRandomScripts(int count, size_t longest, Run run) {
  std::mt19937 random(kSeed);
  std::vector<uint8_t> script;
  for (int i = 0; i < Tries(count); ++i) {
    // Mostly a mutation of the last script, because nearly valid sessions reach more code than noise.
    if (i % 8 == 0 || script.empty()) {
      script.resize(1 + random() % longest);
      for (uint8_t& byte : script) byte = static_cast<uint8_t>(random());
    } else {
      for (int changes = 0; changes < 4; ++changes) {
        script[random() % script.size()] = static_cast<uint8_t>(random());
      }
    }
    run(script);
  }
}

TEST(ServerScripts, no_message_disturbs_the_server) {
  ServerScript script;
  RunRandomScripts(10'000, 120, [&](const std::vector<uint8_t>& bytes) { script.RunSession(bytes); });
}

TEST(ServerScripts, no_content_of_a_segment_disturbs_the_server) {
  ServerScript script;
  RunRandomScripts(10'000, 100, [&](const std::vector<uint8_t>& bytes) { script.RunSegment(bytes); });
}

}  // namespace
}  // namespace xsched::server::testing
