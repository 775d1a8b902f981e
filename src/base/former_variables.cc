#include "base/former_variables.h"

#include <string.h>

#include "base/env.h"
#include "base/log.h"

namespace xsched {

const char* InsteadOfFormerVariable(const char* name) {
#define FORMER(variable, instead) \
  if (strcmp(name, variable) == 0) return instead;
#include "base/former_variables.inc"
#undef FORMER
  return nullptr;
}

void WarnOfFormerVariables() {
#define FORMER(variable, instead) \
  if (EnvText(variable) != nullptr) XSCHED_WARN("%s has no effect any more: %s", variable, instead);
#include "base/former_variables.inc"
#undef FORMER
}

}  // namespace xsched
