#include "shim/common/dl_hooks.h"

#include <dlfcn.h>

#include <initializer_list>

#include "base/libraries.h"
#include "base/loaded_libraries.h"

// glibc's first version on this processor. Programs that were built with a glibc before 2.34 are bound to it.
// dl_hooks.map has it as well.
#if defined(__x86_64__)
#define XSCHED_OLD_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define XSCHED_OLD_GLIBC "GLIBC_2.17"
#else
#error "The dlsym hook is written for x86-64 and AArch64."
#endif
#define XSCHED_NEW_GLIBC "GLIBC_2.34"

// Used by the assembly below. The version script makes these names local to the library.
extern "C" {
xsched::shim::Lookup XSchedLookUp(void* handle, const char* name, void* caller);
void* (*xsched_real_dlsym)(void*, const char*) = nullptr;
}

namespace xsched::shim {
namespace {

// Looked up by version, because the plain name is ours. If threads race here, they find the same function.
template <typename Function>
Function* FindReal(const char* name) {
  for (const char* version : {XSCHED_NEW_GLIBC, XSCHED_OLD_GLIBC}) {
    if (void* found = dlvsym(RTLD_NEXT, name, version)) return reinterpret_cast<Function*>(found);
  }
  return nullptr;
}

void FindRealDlsym() {
  if (__atomic_load_n(&xsched_real_dlsym, __ATOMIC_ACQUIRE) != nullptr) return;
  __atomic_store_n(&xsched_real_dlsym, FindReal<void*(void*, const char*)>("dlsym"), __ATOMIC_RELEASE);
}

}  // namespace

void* RealDlsym(void* handle, const char* name) {
  FindRealDlsym();
  return xsched_real_dlsym(handle, name);
}

void* DlsymBehind(const void* ours, void* handle, const char* name, const void* caller) {
  void* found = RealDlsym(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name);
  if (found != nullptr && found == ours) found = RealDlsym(RTLD_NEXT, name);
  if (found != nullptr || handle != RTLD_DEFAULT) return found;
  // A library that was opened for itself (RTLD_LOCAL) finds what it is linked to, and nobody else does.
  if (const OpenLibrary its(LibraryAt(caller)); its.handle() != nullptr)
    found = RealDlsym(its.handle(), name);
  // Once more, so that dlerror reports it: the calls since have replaced what it would say.
  return found == nullptr || found == ours ? RealDlsym(RTLD_NEXT, name) : found;
}

}  // namespace xsched::shim

xsched::shim::Lookup XSchedLookUp(void* handle, const char* name, void* caller) {
  xsched::shim::FindRealDlsym();
  return xsched::shim::LookUp(handle, name, caller);
}

extern "C" int XSchedDlclose(void* handle) {
  static int (*real)(void*) = nullptr;
  if (__atomic_load_n(&real, __ATOMIC_ACQUIRE) == nullptr) {
    __atomic_store_n(&real, xsched::shim::FindReal<int(void*)>("dlclose"), __ATOMIC_RELEASE);
  }
  int result = real(handle);
  // Most libraries that are closed stay, because others need them: ours close what they have looked into.
  static uint64_t noticed = 0;
  const uint64_t unloaded = xsched::UnloadCount();
  if (__atomic_exchange_n(&noticed, unloaded, __ATOMIC_ACQ_REL) != unloaded) xsched::shim::LibraryUnloaded();
  return result;
}

#if defined(__x86_64__)
// Entered as dlsym(handle, name), with the caller's return address on top of the stack.
__asm__(R"(
  .text
  .p2align 4
  .type xsched_dlsym, %function
xsched_dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), %rdx
  call XSchedLookUp
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  testq %rdx, %rdx
  jne 1f
  jmpq *xsched_real_dlsym(%rip)
1:
  ret
  .cfi_endproc
  .size xsched_dlsym, . - xsched_dlsym
)");
#elif defined(__aarch64__)
// Entered as dlsym(handle, name), with the caller's return address in x30. A Lookup comes back in x0 and x1.
__asm__(R"(
  .text
  .p2align 4
  .type xsched_dlsym, %function
xsched_dlsym:
  .cfi_startproc
  hint 34  // bti c: the target of indirect calls
  stp x29, x30, [sp, -32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  mov x29, sp
  stp x0, x1, [sp, 16]
  mov x2, x30
  bl XSchedLookUp
  cbnz x1, 1f
  .cfi_remember_state
  ldp x0, x1, [sp, 16]
  ldp x29, x30, [sp], 32
  .cfi_restore 30
  .cfi_restore 29
  .cfi_def_cfa_offset 0
  adrp x16, xsched_real_dlsym
  ldr x16, [x16, :lo12:xsched_real_dlsym]
  br x16
1:
  .cfi_restore_state
  ldp x29, x30, [sp], 32
  .cfi_restore 30
  .cfi_restore 29
  .cfi_def_cfa_offset 0
  ret
  .cfi_endproc
  .size xsched_dlsym, . - xsched_dlsym
)");
#endif

__asm__(R"(
  .globl xsched_dlsym_old, xsched_dlsym_new, xsched_dlclose_old, xsched_dlclose_new
  .type xsched_dlsym_old, %function
  .type xsched_dlsym_new, %function
  .type xsched_dlclose_old, %function
  .type xsched_dlclose_new, %function
  .set xsched_dlsym_old, xsched_dlsym
  .set xsched_dlsym_new, xsched_dlsym
  .set xsched_dlclose_old, XSchedDlclose
  .set xsched_dlclose_new, XSchedDlclose
)");
// A program is bound to one of the two versions, which depends on the C library it was built with. So both
// must be exported.
__asm__(".symver xsched_dlsym_old, dlsym@" XSCHED_OLD_GLIBC);
__asm__(".symver xsched_dlsym_new, dlsym@@" XSCHED_NEW_GLIBC);
__asm__(".symver xsched_dlclose_old, dlclose@" XSCHED_OLD_GLIBC);
__asm__(".symver xsched_dlclose_new, dlclose@@" XSCHED_NEW_GLIBC);
