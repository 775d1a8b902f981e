// fill_in TEMPLATE OUTPUT: writes a completion or a manual page. It replaces words between two @ in the
// template by the names and descriptions of the commands, policies and platforms of this build.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cli/all_commands.h"
#include "cli/completions.h"
#include "cli/platform.h"
#include "cli/reach.h"
#include "server/policy_names.h"

namespace {

using namespace xsched;

// As text of a manual page (mdoc).
std::string ManualText(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\\)"), R"(\e)");
}

std::string PolicyList() {
  std::string list = ".Bl -tag -width UTIL -compact\n";
  for (sched::PolicyGetter policy : sched::Policies()) {
    const sched::PolicyInfo& info = policy().info();
    list += fmt::format(".It {}\n{}\n.Pq by {}; hints: {}\n", info.name, ManualText(info.summary),
                        sched::GranularityName(info.granularity), server::NamesOfHints(info));
  }
  return list + ".El";
}

// Variables that have the same text stand together.
std::string PlatformVariables() {
  std::vector<std::pair<std::string, std::string>> texts;  // and the names, in the order of the first
  for (const cli::Platform* platform : cli::Platforms()) {
    for (const cli::EnvironmentVariable& variable : platform->variables) {
      auto same = std::ranges::find(texts, variable.manual, &std::pair<std::string, std::string>::first);
      if (same == texts.end()) {
        texts.emplace_back(variable.manual, variable.name);
      } else {
        same->second += fmt::format(" , {}", variable.name);
      }
    }
  }
  std::vector<std::string> items;
  for (const auto& [text, names] : texts) items.push_back(fmt::format(".It Ev {}\n{}", names, text));
  return fmt::format("{}", fmt::join(items, "\n"));
}

// The ids of those whose devices can be tried: the plan runs on these.
std::vector<std::string> ProbedPlatforms() {
  std::vector<std::string> ids;
  for (const cli::Platform* platform : cli::Platforms()) {
    if (platform->probe != nullptr) ids.emplace_back(platform->id);
  }
  return ids;
}

// The variables in which loaders take layers, to go on after LD_PRELOAD's.
std::string Layers() {
  std::string text;
  for (const cli::Platform* platform : cli::PlatformsWithShim()) {
    if (platform->layers != nullptr)
      text += fmt::format(" and\n.Ev {}\n({})", platform->layers, platform->name);
  }
  return text;
}

std::string Filled(const std::string& text) {
  CLI::App app;
  cli::AddCommands(app);
  const std::map<std::string, std::string> values = {
      {"POLICIES", fmt::format("{}", fmt::join(server::PolicyNames(), " "))},
      {"POLICIES_OR", server::Listed(server::PolicyNames(), "or")},
      {"DEFAULT_POLICY", sched::PolicyName(sched::kDefaultPolicy)},
      {"TIMESLICE_POLICIES", server::Listed(server::PolicyNames(&sched::HintsRead::timeslice), "and")},
      {"AT_A_TIME_POLICIES", server::Listed(server::PolicyNames(&sched::HintsRead::at_a_time), "and")},
      {"WINDOW_POLICIES", server::ReadBy(&sched::HintsRead::window_active)},
      {"POLICY_LIST", PolicyList()},
      {"PLATFORM_VARIABLES", PlatformVariables()},
      {"PRELOADED_PLATFORMS",
       fmt::format("{}", fmt::join(cli::NamesOfPlatforms(/*with_layers=*/false), ", "))},
      {"LAYERS", Layers()},
      {"PROBED_PLATFORMS", fmt::format("{}", fmt::join(ProbedPlatforms(), " "))},
      {"CALIBRATED_PLATFORMS", fmt::format("{}", fmt::join(cli::CalibratedPlatforms(), " "))},
      {"CALIBRATED_PLATFORMS_OR", server::Listed(cli::CalibratedPlatforms(), "or")},
      {"GLIBC", cli::NeededGlibc()},
      {"COMMANDS", cli::CommandWords(app)},
      {"BASH_OPTIONS", cli::BashOptions(app)},
      {"ZSH_COMMANDS", cli::ZshCommands(app)},
      {"ZSH_OPTIONS", cli::ZshOptions(app)},
      {"FISH_OPTIONS", cli::FishOptions(app)},
      {"PROBED_PLATFORMS_OR", server::Listed(ProbedPlatforms(), "or")},
  };
  static const std::regex kWord("@([A-Z_]+)@");
  std::string filled;
  std::smatch word;
  auto at = text.begin();
  while (std::regex_search(at, text.end(), word, kWord)) {
    auto value = values.find(word[1]);
    if (value == values.end()) throw std::runtime_error(fmt::format("{} is not known", word.str()));
    filled.append(at, word[0].first);
    filled += value->second;
    at = word[0].second;
  }
  return filled.append(at, text.end());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: fill_in TEMPLATE OUTPUT\n");
    return 2;
  }
  try {
    std::ifstream in(argv[1]);
    if (!in) throw std::runtime_error("cannot be read");
    const std::string text = Filled(std::string(std::istreambuf_iterator<char>(in), {}));
    std::ofstream out(argv[2]);
    if (!(out << text << std::flush)) throw std::runtime_error(fmt::format("cannot write {}", argv[2]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "fill_in: {}: {}\n", argv[1], error.what());
    return 1;
  }
  return 0;
}
