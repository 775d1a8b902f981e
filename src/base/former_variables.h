// The environment variables of XSched 1.2 that nothing reads any more (former_variables.inc).
#pragma once

namespace xsched {

// What to do instead; null: `name` is no such variable.
const char* InsteadOfFormerVariable(const char* name);

// One warning for each that is set. Call it once.
void WarnOfFormerVariables();

}  // namespace xsched
