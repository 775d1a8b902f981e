#include "shim/common/testing/dl_hooks_library.h"

#include <string.h>

#include "shim/common/dl_hooks.h"

namespace {

const void* last_caller = nullptr;
int unloaded = 0;

}  // namespace

namespace xsched::shim {

Lookup LookUp(void*, const char* name, void* caller) {
  if (strcmp(name, "HookedName") == 0) {
    last_caller = caller;
    return {reinterpret_cast<void*>(&HookedAnswer), 1};
  }
  if (strcmp(name, "HookedAbsence") == 0) return {nullptr, 1};
  return {};
}

void LibraryUnloaded() { ++unloaded; }

}  // namespace xsched::shim

void HookedAnswer() {}
void HookedNext() {}
const void* HookedCaller() { return last_caller; }
int HookedLibrariesUnloaded() { return unloaded; }
