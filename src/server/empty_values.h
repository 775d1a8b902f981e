// No option of a program may have an empty value.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace xsched::server {

// A script's variable that is not set would change what the program does.
inline CLI::Validator NotEmpty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? "it must not be empty" : ""; }, "");
}

// Of all options that `app` and its subcommands have by now. The library leaves out those whose value may be
// missing.
inline void RefuseEmptyValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) option->check(NotEmpty());
  for (CLI::App* command : app.get_subcommands({})) RefuseEmptyValues(*command);
}

}  // namespace xsched::server
