// The environment variables that programs under XSched read: what each means, and whether a value is one that
// it takes. Looks at the files that values name; changes nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace xsched::cli {

struct EnvironmentVariable {
  enum class Kind { kNumber, kWord, kPolicy, kByteSize, kText, kFile, kFiles, kSocket };
  const char* name;
  std::string meaning;
  Kind kind;
  int64_t min = 0;
  int64_t max = 0;
  std::string words;   // the words it takes, in capitals, with spaces around each
  std::string manual;  // a platform's: the manual's text (mdoc); variables with the same text share it
  const char* most = nullptr;  // the variable that has the largest number it takes; if that is not set: `max`
};

std::span<const EnvironmentVariable> EnvironmentVariables();

// Why `value` is not one that the variable takes in `environment` ("NAME=value", to a null); empty: it is (or
// it is empty, which is as unset).
std::string ProblemOf(const EnvironmentVariable& variable, const std::string& value,
                      const char* const* environment);

// One sentence for each variable in `environment` that XSched will not take as it is, those included that
// begin with XSCHED_ and that nothing reads.
std::vector<std::string> EnvironmentProblems(const char* const* environment);

}  // namespace xsched::cli
