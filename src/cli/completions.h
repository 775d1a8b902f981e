// What shells complete of the commands: options, subcommands and values, as the commands declare them.
// `packaging/completions` has the rest of each shell's file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace xsched::cli {

// The names of the commands, separated by spaces.
std::string CommandWords(const CLI::App& app);

// One line for each command. Commands that pass all of their options on are left out.
std::string BashOptions(const CLI::App& app);  // of a case over the command: sets `words`
std::string ZshOptions(const CLI::App& app);   // of a case over the command: calls _arguments
std::string ZshCommands(const CLI::App& app);  // elements of an array for _describe
std::string FishOptions(const CLI::App& app);  // calls of complete for the command $name

}  // namespace xsched::cli
