// The environment in which `xsched run` would start a program: it is asked for it, so that there is one place
// that knows.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "slurm/settings.h"

namespace xsched::slurm {

struct Text {
  struct Free {
    void operator()(char* bytes) const { free(bytes); }
  };
  std::unique_ptr<char, Free> memory;  // "NAME=value", each with a NUL behind it
  size_t size = 0;
  char warning[160] = "";  // what xsched has to say, one line

  // `visit(entry)`, which is a text that ends with a NUL.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (size_t at = 0; at < size;) {
      const std::string_view entry(memory.get() + at);
      visit(entry);
      at += entry.size() + 1;
    }
  }
};

inline constexpr Duration kPatience = std::chrono::seconds(10);

// Starts `program` with the privileges of the effective user and group, and ends it if it takes longer than
// `patience`. The error says why there is no answer.
//
// The environment is the user's: it may make the program run code of the user (LD_PRELOAD). So nothing is
// left to the program that must happen. The time is kept here, what it writes is bounded, and it can start no
// other process, which would stay behind.
Result<Text> EnvironmentByXSched(const char* program, const Values& values, char* const* environment,
                                 Duration patience = kPatience);

}  // namespace xsched::slurm
