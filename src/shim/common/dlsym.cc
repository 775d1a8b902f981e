// Programs that look functions up get the wrapped ones. Each shim says which those are (WrapLookedUp).
#include <dlfcn.h>

#include "shim/common/lookup.h"
#include "shim/common/real_dlsym.h"

namespace {

// Not for calls with RTLD_NEXT, whose meaning depends on who calls: those are jumped on to the C library's function, with
// the caller's return address still on the stack.
__attribute__((used)) void* LookUp(void* handle, const char* name) {
  void* found = xsched::shim::RealDlsym()(handle, name);
  return found == nullptr || name == nullptr ? found : xsched::shim::WrapLookedUp(name, found);
}

__attribute__((used)) void* RealDlsymAddress() { return reinterpret_cast<void*>(xsched::shim::RealDlsym()); }

}  // namespace

extern "C" {
// `handle` and `name` must survive the look at where the real function is; then it is a plain jump.
#if defined(__x86_64__)
__attribute__((naked, visibility("default"))) void* xsched_dlsym(void*, const char*) {
  __asm__(
      "cmpq $-1, %%rdi\n"  // RTLD_NEXT
      "jne %P0\n"
      "pushq %%rdi\n"
      "pushq %%rsi\n"
      "subq $8, %%rsp\n"
      "call %P1\n"
      "addq $8, %%rsp\n"
      "popq %%rsi\n"
      "popq %%rdi\n"
      "jmp *%%rax\n"
      :
      : "i"(LookUp), "i"(RealDlsymAddress));
}
#else
// A call in tail position, which optimising compilers make a jump.
__attribute__((visibility("default"), optimize("O2"))) void* xsched_dlsym(void* handle, const char* name) {
  if (handle == RTLD_NEXT) return xsched::shim::RealDlsym()(handle, name);
  return LookUp(handle, name);
}
#endif
}

// Old programs are bound to the first version, new ones to the second; one without the other catches nothing.
__asm__(".symver xsched_dlsym, dlsym@GLIBC_2.2.5");
__asm__(".set xsched_dlsym_2_34, xsched_dlsym\n.globl xsched_dlsym_2_34\n.symver xsched_dlsym_2_34, dlsym@@GLIBC_2.34");
