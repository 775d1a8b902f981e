// Which libraries of HIP's this process has loaded, without opening any.
#pragma once

#include <link.h>

#include "base/array.h"

namespace xsched::hip {

struct LoadedLibrary {
  const void* base;
  char path[512];  // as dlopen knows it
};

// The loaded libraries that are instances of libamdhip64, by file name or SONAME, in the order in which they
// were loaded. Allocates; calls nothing of theirs. False: out of memory.
bool FindLoadedInstances(Array<LoadedLibrary>* out);

// Counts up with each library that the process loads: while it stays the same, no instance is new.
uint64_t LoadCount();

}  // namespace xsched::hip
