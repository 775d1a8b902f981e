// Finds libraries that this process has loaded, by their names. Opens none, and calls nothing of theirs.
#pragma once

#include <cstdint>

#include "base/array.h"

namespace xsched {

struct LoadedLibrary {
  const void* base;
  char path[512];  // the path for OpenLibrary
};

// The name of a path's file.
const char* FileName(const char* path);

// The libraries whose file name or SONAME begins with `beginning`, in the order in which they were loaded.
// Allocates. False: out of memory.
bool FindLoadedLibraries(const char* beginning, Array<LoadedLibrary>* out);

// The library or program that contains `address`. False: none.
bool FindLibraryAt(const void* address, LoadedLibrary* out);

// Grows with each library that the process loads. While it stays the same, there is no new library.
uint64_t LoadCount();
// Grows with each library that the process unloads.
uint64_t UnloadCount();

}  // namespace xsched
