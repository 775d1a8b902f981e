// A profiler of AMD's (librocprofiler-sdk) that is loaded as well: the runtime offers its dispatch tables to
// one library alone, which is this one, so they are handed on.
#pragma once

#include <cstdint>

namespace xsched::hip {

using SetTable = int(const char* name, uint64_t version, uint64_t instance, void** tables, uint64_t count);

// The profiler's own function that takes the tables. Null: no profiler is loaded. Loads none.
SetTable* ProfilersSetTable();

}  // namespace xsched::hip
