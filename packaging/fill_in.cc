// fill_in TEMPLATE OUTPUT: writes a completion or a manual page, with the policies of this build where the
// template has a word between two @.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <stdexcept>

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
    list += fmt::format(".It {}\n{}\n.Pq hints: {}\n", info.name, ManualText(info.summary),
                        server::NamesOfHints(info));
  }
  return list + ".El";
}

std::string Filled(const std::string& text) {
  const std::map<std::string, std::string> values = {
      {"POLICIES", fmt::format("{}", fmt::join(server::PolicyNames(), " "))},
      {"POLICIES_OR", server::Listed(server::PolicyNames(), "or")},
      {"DEFAULT_POLICY", sched::PolicyName(sched::kDefaultPolicy)},
      {"TIMESLICE_POLICIES", server::Listed(server::PolicyNames(&sched::HintsRead::timeslice), "and")},
      {"POLICY_LIST", PolicyList()},
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
