#include "shim/common/communicators.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>

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

int Make(InitRank next, void** communicator, int ranks, UniqueId id, int rank) {
  if (ranks > 1) Join(id);
  return next(communicator, ranks, id, rank);
}

int Make(InitRankConfig next, void** communicator, int ranks, UniqueId id, int rank, void* config) {
  if (ranks > 1) Join(id);
  return next(communicator, ranks, id, rank, config);
}

int Make(InitRankScalable next, void** communicator, int ranks, int rank, int ids, UniqueId* id,
         void* config) {
  if (ranks > 1 && ids > 0 && id != nullptr) Join(id[0]);
  return next(communicator, ranks, rank, ids, id, config);
}

// The functions of this type that were asked for by dlsym. A program may have several copies of NCCL, so each
// of their functions has one here in front of it.
template <typename Function>
class Asked;
template <typename... Args>
class Asked<int (*)(Args...)> {
 public:
  using Function = int (*)(Args...);

  // What to call instead of `next`. That itself if there are too many copies: it is not seen then.
  static void* InFrontOf(void* next) {
    static constexpr Function kCalls[kMost] = {&Call<0>, &Call<1>, &Call<2>, &Call<3>};
    for (size_t i = 0; i < kMost; ++i) {
      void* known = nullptr;
      if (next_[i].compare_exchange_strong(known, next) || known == next)
        return reinterpret_cast<void*>(kCalls[i]);
    }
    return next;
  }

 private:
  static constexpr size_t kMost = 4;

  template <size_t kCopy>
  static int Call(Args... args) {
    return Make(reinterpret_cast<Function>(next_[kCopy].load()), args...);
  }

  static inline constinit std::atomic<void*> next_[kMost]{};
};

}  // namespace
}  // namespace xsched::shim

using namespace xsched::shim;

extern "C" {

__attribute__((visibility("default"))) int ncclCommInitRank(void** communicator, int ranks, UniqueId id,
                                                            int rank) {
  const auto next = reinterpret_cast<InitRank>(FindFor(__builtin_return_address(0), kInitRank));
  return next == nullptr ? kSystemError : Make(next, communicator, ranks, id, rank);
}

__attribute__((visibility("default"))) int ncclCommInitRankConfig(void** communicator, int ranks, UniqueId id,
                                                                  int rank, void* config) {
  const auto next = reinterpret_cast<InitRankConfig>(FindFor(__builtin_return_address(0), kInitRankConfig));
  return next == nullptr ? kSystemError : Make(next, communicator, ranks, id, rank, config);
}

__attribute__((visibility("default"))) int ncclCommInitRankScalable(void** communicator, int ranks, int rank,
                                                                    int ids, UniqueId* id, void* config) {
  const auto next =
      reinterpret_cast<InitRankScalable>(FindFor(__builtin_return_address(0), kInitRankScalable));
  return next == nullptr ? kSystemError : Make(next, communicator, ranks, rank, ids, id, config);
}

}  // extern "C"

namespace xsched::shim {

Lookup LookUpCommunicators(void* handle, const char* name) {
  constexpr Lookup kNotOurs{};
  void* (*in_front_of)(void*) = nullptr;
  if (strcmp(name, kInitRank) == 0) in_front_of = Asked<InitRank>::InFrontOf;
  if (strcmp(name, kInitRankConfig) == 0) in_front_of = Asked<InitRankConfig>::InFrontOf;
  if (strcmp(name, kInitRankScalable) == 0) in_front_of = Asked<InitRankScalable>::InFrontOf;
  if (in_front_of == nullptr) return kNotOurs;
  void* found = RealDlsym(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name);
  if (found != nullptr && IsAShims(found)) found = RealDlsym(RTLD_NEXT, name);
  const bool is_nccls = found != nullptr && !IsAShims(found);
  return {is_nccls ? in_front_of(found) : nullptr, 1};
}

}  // namespace xsched::shim
