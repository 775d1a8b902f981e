// The runtime is C++, and since ROCm 7 some of its functions throw what its exported functions catch. Our
// wrappers are between the two. So they are compiled with exceptions: their scopes end by their destructors.
//
// For that, compiled code needs two symbols, of which libstdc++ and libgcc_s have others. A program may have
// none of these libraries, or have several unwinders, so we do not link to them:
//
//   throw -> the unwinder -> __gxx_personality_v0: where are the destructors of this frame?
//                         -> they run -> _Unwind_Resume -> the same unwinder goes on
//
// We catch nothing, so a frame has destructors or nothing. If the unwinder is not in a library, its functions
// are not found, and the frame is passed without them.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <exception>

#include "base/libraries.h"
#include "shim/common/dl_hooks.h"

namespace {

using namespace xsched;

// Of the C++ ABI (Itanium, level I). The types are the unwinder's own.
enum Reason { kContinueUnwind = 8, kInstallContext = 7 };
constexpr int kCleanupPhase = 2;
struct UnwindContext;
struct UnwindException;
using ResumeUnwinding = void(UnwindException*);

constinit thread_local ResumeUnwinding* resume __attribute__((tls_model("initial-exec"))) = nullptr;

// The unwinder that has called us. Its functions are used, because the layout of a context is its own.
class Unwinder {
 public:
  explicit Unwinder(const void* caller) : library_(LibraryAt(caller)), open_(library_) {}

  // Null: it does not export it.
  template <typename Function>
  Function* Find(const char* name) const {
    void* found = open_.handle() == nullptr ? nullptr : shim::RealDlsym(open_.handle(), name);
    return LibraryAt(found) == library_ ? reinterpret_cast<Function*>(found) : nullptr;
  }

 private:
  const link_map* const library_;
  const OpenLibrary open_;
};

// Reads the language-specific data of a function: which of its calls have destructors behind them.
class Cleanups {
 public:
  explicit Cleanups(const uint8_t* data) : next_(data) {}

  // The offset of the code that runs the destructors for a call at `offset`. 0: there are none.
  uint64_t At(uint64_t offset) {
    if (*next_++ != kOmitted) return 0;
    if (*next_++ != kOmitted) ReadVariable();
    const uint8_t encoding = *next_++;
    if (encoding != kVariable && encoding != kFixed) return 0;
    const uint64_t length = ReadVariable();
    for (const uint8_t* end = next_ + length; next_ < end;) {
      const uint64_t begin = Read(encoding);
      const uint64_t size = Read(encoding);
      const uint64_t cleanup = Read(encoding);
      const uint64_t action = ReadVariable();
      if (offset >= begin && offset - begin < size) return action == 0 ? cleanup : 0;
    }
    return 0;
  }

 private:
  // DWARF's encodings of pointers.
  static constexpr uint8_t kOmitted = 0xff;
  static constexpr uint8_t kVariable = 0x01;  // ULEB128
  static constexpr uint8_t kFixed = 0x03;     // 4 bytes

  uint64_t ReadVariable() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const uint8_t byte = *next_++;
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }
  uint64_t Read(uint8_t encoding) {
    if (encoding == kVariable) return ReadVariable();
    uint32_t value;
    __builtin_memcpy(&value, next_, sizeof value);
    next_ += sizeof value;
    return value;
  }

  const uint8_t* next_;
};

}  // namespace

extern "C" {

Reason __gxx_personality_v0(int version, int phase, uint64_t, UnwindException* exception,
                            UnwindContext* context) {
  if (version != 1 || (phase & kCleanupPhase) == 0) return kContinueUnwind;
  const Unwinder unwinder(__builtin_return_address(0));
  auto* data_of = unwinder.Find<const uint8_t*(UnwindContext*)>("_Unwind_GetLanguageSpecificData");
  auto* begin_of = unwinder.Find<uintptr_t(UnwindContext*)>("_Unwind_GetRegionStart");
  auto* return_address_of = unwinder.Find<uintptr_t(UnwindContext*)>("_Unwind_GetIP");
  auto* set_register = unwinder.Find<void(UnwindContext*, int, uintptr_t)>("_Unwind_SetGR");
  auto* set_address = unwinder.Find<void(UnwindContext*, uintptr_t)>("_Unwind_SetIP");
  resume = unwinder.Find<ResumeUnwinding>("_Unwind_Resume");
  if (data_of == nullptr || begin_of == nullptr || return_address_of == nullptr || set_register == nullptr ||
      set_address == nullptr || resume == nullptr)
    return kContinueUnwind;
  const uint8_t* data = data_of(context);
  if (data == nullptr) return kContinueUnwind;
  const uintptr_t begin = begin_of(context);
  const uint64_t cleanup = Cleanups(data).At(return_address_of(context) - 1 - begin);
  if (cleanup == 0) return kContinueUnwind;
  set_register(context, __builtin_eh_return_data_regno(0), reinterpret_cast<uintptr_t>(exception));
  set_register(context, __builtin_eh_return_data_regno(1), 0);
  set_address(context, begin + cleanup);
  return kInstallContext;
}

// Called at the end of a frame's destructors.
void _Unwind_Resume(UnwindException* exception) {
  resume(exception);
  __builtin_trap();
}

// Named by compiled destructors, which throw nothing.
void* __cxa_begin_catch(void*) noexcept { __builtin_trap(); }

}  // extern "C"

void std::terminate() noexcept { __builtin_trap(); }
