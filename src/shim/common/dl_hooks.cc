#include "shim/common/dl_hooks.h"

#include <dlfcn.h>

#include <initializer_list>

// What the assembly below uses; local to the library by its version script.
extern "C" {
xsched::shim::Lookup XSchedLookUp(void* handle, const char* name, void* caller);
void* (*xsched_real_dlsym)(void*, const char*) = nullptr;
}

namespace xsched::shim {
namespace {

// By version, because the plain name is ours. Racing threads find the same.
template <typename Function>
Function* FindReal(const char* name) {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"}) {
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
  xsched::shim::LibraryClosed();
  return result;
}

#if defined(__x86_64__)
// Entered as dlsym(handle, name), with the caller's return address on top of the stack.
__asm__(R"(
  .text
  .p2align 4
  .type xsched_dlsym, @function
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

  .globl xsched_dlsym_old, xsched_dlsym_new, xsched_dlclose_old, xsched_dlclose_new
  .type xsched_dlsym_old, @function
  .type xsched_dlsym_new, @function
  .type xsched_dlclose_old, @function
  .type xsched_dlclose_new, @function
  .set xsched_dlsym_old, xsched_dlsym
  .set xsched_dlsym_new, xsched_dlsym
  .set xsched_dlclose_old, XSchedDlclose
  .set xsched_dlclose_new, XSchedDlclose
)");
// Programs are bound to one of the two versions, by the C library that they were built with; without either,
// nothing of theirs is caught.
__asm__(".symver xsched_dlsym_old, dlsym@GLIBC_2.2.5");
__asm__(".symver xsched_dlsym_new, dlsym@@GLIBC_2.34");
__asm__(".symver xsched_dlclose_old, dlclose@GLIBC_2.2.5");
__asm__(".symver xsched_dlclose_new, dlclose@@GLIBC_2.34");
#else
#error "The dlsym hook is written for x86-64 only."
#endif
