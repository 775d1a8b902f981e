// The environment in which `xsched run` would start a program: it is asked for it, so that there is one place
// that knows.
#pragma once

#include <stdlib.h>

#include <cstddef>
#include <memory>
#include <string_view>

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

// Starts `program` with the privileges of the effective user and group, for 10 seconds at most. The error
// says why there is no answer.
Result<Text> EnvironmentByXSched(const char* program, const Values& values, char* const* environment);

}  // namespace xsched::slurm
