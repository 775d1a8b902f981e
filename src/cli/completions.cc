#include "cli/completions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <vector>

#include "cli/platform.h"
#include "server/policy_names.h"

namespace xsched::cli {
namespace {

using Words = std::vector<std::string>;

// Of options that take one of a few words, whatever the command.
Words ValuesOf(const std::string& option) {
  static const std::map<std::string, Words> values = {
      {"--policy", server::PolicyNames()},   {"--name", server::PolicyNames()},
      {"--level", {"1", "2", "3"}},          {"--scheduler", {"GLB", "LCL", "APP"}},
      {"--route", {"layer", "preload"}},     {"--by", {"queue", "process", "tenant"}},
      {"--platform", CalibratedPlatforms()}, {"--kind", {"class", "share"}},
  };
  auto found = values.find(option);
  return found == values.end() ? Words{} : found->second;
}

struct Option {
  Words longs;   // with their dashes
  Words shorts;  // likewise
  std::string description;
  bool takes_value;
  bool takes_file;
  Words values;  // empty: any
};

// In single quotes of a shell.
std::string Quoted(const std::string& text) {
  return fmt::format("'{}'", std::regex_replace(text, std::regex("'"), R"('\'')"));
}

// A check of the option may stand behind its type.
bool IsFile(const CLI::Option& option) { return option.get_type_name().starts_with("FILE"); }

void AddOptions(const CLI::App& command, std::vector<Option>& options) {
  for (const CLI::Option* declared : command.get_options()) {
    if (declared->get_group().empty()) continue;  // hidden
    Option option{
        {}, {}, declared->get_description(), declared->get_items_expected_max() != 0, IsFile(*declared), {}};
    for (const std::string& name : declared->get_lnames()) option.longs.push_back("--" + name);
    for (const std::string& name : declared->get_snames()) option.shorts.push_back("-" + name);
    for (const std::string& name : option.longs) {
      if (option.values.empty()) option.values = ValuesOf(name);
    }
    // Before a list of what it takes.
    if (option.description.ends_with(':')) option.description.pop_back();
    // Without a name it is a positional argument. Subcommands may have the same option.
    const bool is_new = std::ranges::find(options, option.longs, &Option::longs) == options.end();
    if (!option.longs.empty() && is_new) options.push_back(std::move(option));
  }
}

// With those of its subcommands.
std::vector<Option> OptionsOf(const CLI::App& command) {
  std::vector<Option> options;
  AddOptions(command, options);
  for (const CLI::App* subcommand : command.get_subcommands(nullptr)) AddOptions(*subcommand, options);
  return options;
}

Words SubcommandsOf(const CLI::App& command) {
  Words names;
  for (const CLI::App* subcommand : command.get_subcommands(nullptr)) names.push_back(subcommand->get_name());
  return names;
}

// One line for each command whose options are declared.
template <typename Line>
std::string Lines(const CLI::App& app, Line&& line) {
  std::vector<std::string> lines;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (!command->get_prefix_command()) lines.push_back(line(*command));
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

// Every command has it: the templates offer it.
bool IsHelp(const Option& option) { return option.longs == Words{"--help"}; }
bool IsPid(const Option& option) { return option.longs == Words{"--pid"}; }

bool TakesProgram(const CLI::App& command) { return command.get_option_no_throw("program") != nullptr; }
bool TakesFiles(const CLI::App& command) {
  const CLI::Option* files = command.get_option_no_throw("files");
  return files != nullptr && IsFile(*files);
}

// "--level[set the level]:value:(1 2 3)", once for each name of the option.
Words ZshSpecs(const Option& option) {
  Words names = option.longs;
  names.insert(names.end(), option.shorts.begin(), option.shorts.end());
  // A bracket ends the description, and colons separate the parts.
  const std::string description =
      std::regex_replace(option.description, std::regex(R"([\[\]:\\])"), R"(\$&)");
  for (std::string& spec : names) {
    if (!description.empty()) spec += fmt::format("[{}]", description);
    if (option.takes_value)
      spec += IsPid(option) ? ":pid:_pids" : option.takes_file ? ":file:_files" : ":value:";
    if (!option.values.empty()) spec += fmt::format("({})", fmt::join(option.values, " "));
    spec = Quoted(spec);
  }
  return names;
}

std::string FishLine(const std::string& command, const Option& option) {
  std::string line = fmt::format("    complete -c $name -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& name : option.longs) line += fmt::format(" -l {}", name.substr(2));
  for (const std::string& name : option.shorts) line += fmt::format(" -s {}", name.substr(1));
  if (option.takes_value) line += option.takes_file ? " -r" : " -x";
  if (IsPid(option)) line += " -a '(__fish_complete_pids)'";
  if (!option.values.empty()) line += fmt::format(" -a '{}'", fmt::join(option.values, " "));
  if (!option.description.empty()) {
    // Fish's single quotes know two escapes.
    line += fmt::format(" -d '{}'", std::regex_replace(option.description, std::regex(R"(['\\])"), R"(\$&)"));
  }
  return line;
}

}  // namespace

std::string CommandWords(const CLI::App& app) {
  return fmt::format("{}", fmt::join(SubcommandsOf(app), " "));
}

std::string BashOptions(const CLI::App& app) {
  return Lines(app, [](const CLI::App& command) {
    Words words = SubcommandsOf(command);
    for (const Option& option : OptionsOf(command)) {
      if (!IsHelp(option)) words.insert(words.end(), option.longs.begin(), option.longs.end());
    }
    if (TakesProgram(command)) words.push_back("--");
    return fmt::format("    {}) words=\"{}\" ;;", command.get_name(), fmt::join(words, " "));
  });
}

std::string ZshCommands(const CLI::App& app) {
  Words commands;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.push_back("  " + Quoted(fmt::format("{}:{}", command->get_name(), command->get_description())));
  }
  return fmt::format("{}", fmt::join(commands, "\n"));
}

std::string ZshOptions(const CLI::App& app) {
  return Lines(app, [](const CLI::App& command) {
    Words specs;
    for (const Option& option : OptionsOf(command)) {
      if (IsHelp(option)) continue;
      const Words more = ZshSpecs(option);
      specs.insert(specs.end(), more.begin(), more.end());
    }
    const Words subcommands = SubcommandsOf(command);
    if (!subcommands.empty())
      specs.push_back(Quoted(fmt::format("1::subcommand:({})", fmt::join(subcommands, " "))));
    if (TakesProgram(command)) specs.push_back("'*:::program:_normal'");
    if (TakesFiles(command)) specs.push_back("'*:file:_files'");
    return fmt::format("  {}) _arguments {} ;;", command.get_name(), fmt::join(specs, " \\\n    "));
  });
}

std::string FishOptions(const CLI::App& app) {
  return Lines(app, [](const CLI::App& command) {
    Words lines;
    const Words subcommands = SubcommandsOf(command);
    if (!subcommands.empty()) {
      lines.push_back(fmt::format("    complete -c $name -n '__fish_seen_subcommand_from {}' -f -a '{}'",
                                  command.get_name(), fmt::join(subcommands, " ")));
    }
    for (const Option& option : OptionsOf(command)) {
      if (!IsHelp(option)) lines.push_back(FishLine(command.get_name(), option));
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
  });
}

}  // namespace xsched::cli
