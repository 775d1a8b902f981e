#include "shim/common/pass_through.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/fork_handler.h"
#include "base/libraries.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/no_destroy.h"
#include "shim/common/call_sites.h"
#include "shim/common/pass_rules.h"
#include "shim/common/verbose_log.h"

namespace xsched::shim {

constinit std::atomic<PassThrough> pass_through{PassThrough::kUnknown};

namespace {

constexpr char kLibraries[] = "XSCHED_PASSTHROUGH_LIBS";
constexpr char kFile[] = "XSCHED_PASSTHROUGH_FILE";
constexpr size_t kMaxFileSize = size_t{1} << 20;

constinit NoDestroy<PassRules> rules;
constinit Mutex<LockRank::kPassRules> reading;  // serializes reading the rules, which never change afterwards

// For each call site, whether the function passes.
constinit CallSites callers;

// Reads the file into `text`. False: it does not fit, or cannot be read.
bool ReadWhole(const char* path, Array<char>* text) {
  UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file || !text->Reserve(kMaxFileSize + 1)) return false;
  for (char block[4096];;) {
    const ssize_t size = read(file.get(), block, sizeof block);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return false;
    if (size == 0) return true;
    for (ssize_t i = 0; i < size; ++i) {
      if (text->size() == kMaxFileSize || !text->Push(block[i])) {
        errno = EFBIG;
        return false;
      }
    }
  }
}

void ReadRulesFile(const char* path) {
  Array<char> text;
  int line = 0;
  if (!ReadWhole(path, &text)) {
    XSCHED_WARN("%s: %s: %s", kFile, path, strerror(errno));
  } else if (!rules->ReadFile({text.data(), text.size()}, &line)) {
    XSCHED_WARN("%s: %s: line %d is not understood: ignoring the file", kFile, path, line);
  }
}

PassThrough ReadRules() {
  static constinit ForkHandler fork_handler = {[] { reading.ResetAfterFork(); }};
  fork_handler.Install();
  MutexLock lock(reading);
  PassThrough known = pass_through.load(std::memory_order_acquire);
  if (known != PassThrough::kUnknown) return known;
  rules->SetListedNames(EnvText(kLibraries));
  if (const char* path = EnvText(kFile)) ReadRulesFile(path);
  known = rules->empty() ? PassThrough::kNobody : PassThrough::kSome;
  pass_through.store(known, std::memory_order_release);
  return known;
}

bool Decide(const void* caller, int function) {
  const link_map* library = LibraryAt(caller);
  const char* path = library == nullptr ? "" : library->l_name;
  const PassRules::Reason reason = rules->Decide(path, FunctionName(function));
  if (reason == PassRules::Reason::kLibrary && IsFirst(Logged::kPassThrough, library))
    Log("[XSched] Passthrough: %s\n", NameForPeople(library));
  return reason != PassRules::Reason::kScheduled;
}

}  // namespace

bool LooksUpPassThrough(const void* caller, int function) {
  PassThrough known = pass_through.load(std::memory_order_acquire);
  if (known == PassThrough::kUnknown) known = ReadRules();
  if (known == PassThrough::kNobody) return false;
  int passes = callers.Find(caller, function);
  if (passes == CallSites::kUnknown) {
    passes = Decide(caller, function);
    callers.Remember(caller, passes, function);
  }
  return passes != 0;
}

void ForgetPassThrough() {
  if (pass_through.load(std::memory_order_relaxed) == PassThrough::kSome) callers.Forget();
}

}  // namespace xsched::shim
