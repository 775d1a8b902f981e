#include "shim/common/communicators.h"

#include <dlfcn.h>
#include <string.h>

#include "base/libraries.h"
#include "base/log.h"
#include "preempt/api/job.h"

namespace xsched::shim {
namespace {

// NCCL's binary interface, which RCCL shares, as far as it is needed here.
constexpr int kSystemError = 2;
struct UniqueId {
  char bytes[128];
};

using InitRank = int (*)(void** communicator, int ranks, UniqueId id, int rank);
using InitRankConfig = int (*)(void** communicator, int ranks, UniqueId id, int rank, void* config);
using InitRankScalable = int (*)(void** communicator, int ranks, int rank, int ids, UniqueId* id,
                                 void* config);

constexpr char kInitRank[] = "ncclCommInitRank";
constexpr char kInitRankConfig[] = "ncclCommInitRankConfig";
constexpr char kInitRankScalable[] = "ncclCommInitRankScalable";

constexpr const char* kLibraries[] = {"libnccl.so.2", "librccl.so.1"};

// A shim of another platform has these functions as well.
bool IsAShims(const void* function) {
  const link_map* library = LibraryAt(function);
  const char* name = library == nullptr ? "" : library->l_name;
  const char* slash = strrchr(name, '/');
  return strncmp(slash == nullptr ? name : slash + 1, "libshim", strlen("libshim")) == 0;
}

// In its own library, or in those that it needs. They may have a NCCL that no other library sees.
void* FindFor(const void* caller, const char* name) {
  void* found = nullptr;
  if (const link_map* library = LibraryAt(caller); library != nullptr && library->l_name[0] != '\0') {
    const OpenLibrary opened(library);
    if (opened.handle() != nullptr) found = RealDlsym(opened.handle(), name);
  }
  for (const char* library : kLibraries) {
    if (found != nullptr && !IsAShims(found)) return found;
    const OpenLibrary opened(library);
    found = opened.handle() == nullptr ? nullptr : RealDlsym(opened.handle(), name);
  }
  if (found == nullptr || IsAShims(found)) found = RealDlsym(RTLD_NEXT, name);
  if (found != nullptr && !IsAShims(found)) return found;
  XSCHED_WARN("%s was called, and no library has it", name);
  return nullptr;
}

void Join(const UniqueId& id) { preempt::JoinJob(id.bytes); }

}  // namespace
}  // namespace xsched::shim

using namespace xsched::shim;

extern "C" {

__attribute__((visibility("default"))) int ncclCommInitRank(void** communicator, int ranks, UniqueId id,
                                                            int rank) {
  const auto next = reinterpret_cast<InitRank>(FindFor(__builtin_return_address(0), kInitRank));
  if (next == nullptr) return kSystemError;
  if (ranks > 1) Join(id);
  return next(communicator, ranks, id, rank);
}

__attribute__((visibility("default"))) int ncclCommInitRankConfig(void** communicator, int ranks, UniqueId id,
                                                                  int rank, void* config) {
  const auto next = reinterpret_cast<InitRankConfig>(FindFor(__builtin_return_address(0), kInitRankConfig));
  if (next == nullptr) return kSystemError;
  if (ranks > 1) Join(id);
  return next(communicator, ranks, id, rank, config);
}

__attribute__((visibility("default"))) int ncclCommInitRankScalable(void** communicator, int ranks, int rank,
                                                                    int ids, UniqueId* id, void* config) {
  const auto next =
      reinterpret_cast<InitRankScalable>(FindFor(__builtin_return_address(0), kInitRankScalable));
  if (next == nullptr) return kSystemError;
  if (ranks > 1 && ids > 0 && id != nullptr) Join(id[0]);
  return next(communicator, ranks, rank, ids, id, config);
}

}  // extern "C"

namespace xsched::shim {

Lookup LookUpCommunicators(void* handle, const char* name) {
  constexpr Lookup kNotOurs{};
  if (strcmp(name, kInitRank) != 0 && strcmp(name, kInitRankConfig) != 0 &&
      strcmp(name, kInitRankScalable) != 0)
    return kNotOurs;
  void* found = RealDlsym(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name);
  if (found != nullptr && IsAShims(found)) found = RealDlsym(RTLD_NEXT, name);
  return {found != nullptr && IsAShims(found) ? nullptr : found, 1};
}

}  // namespace xsched::shim
