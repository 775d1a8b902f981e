#include "shim/common/dl_hooks.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "shim/common/testing/dl_hooks_library.h"

// The functions as a program has them that was built with a C library before 2.34.
extern "C" {
void* OldDlsym(void* handle, const char* name);
int OldDlclose(void* handle);
}
#if defined(__x86_64__)
__asm__(".symver OldDlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver OldDlclose, dlclose@GLIBC_2.2.5");
#else
__asm__(".symver OldDlsym, dlsym@GLIBC_2.17");
__asm__(".symver OldDlclose, dlclose@GLIBC_2.17");
#endif

namespace {

// The library that contains `address`.
const char* LibraryOf(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) == 0 ? "" : info.dli_fname;
}

TEST(DlHooks, what_the_shim_answers_is_what_the_program_gets) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "HookedName"), reinterpret_cast<void*>(&HookedAnswer));
  EXPECT_EQ(OldDlsym(RTLD_DEFAULT, "HookedName"), reinterpret_cast<void*>(&HookedAnswer));
}

TEST(DlHooks, the_shim_may_answer_that_there_is_no_such_function) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "HookedAbsence"), nullptr);
}

TEST(DlHooks, the_shim_gets_the_caller) {
  static_cast<void>(dlsym(RTLD_DEFAULT, "HookedName"));
  EXPECT_STREQ(LibraryOf(HookedCaller()), LibraryOf(reinterpret_cast<void*>(&LibraryOf)));
}

TEST(DlHooks, all_else_is_answered_by_the_C_library) {
  void* found = dlsym(RTLD_DEFAULT, "getpid");
  EXPECT_NE(found, nullptr);
  EXPECT_EQ(OldDlsym(RTLD_DEFAULT, "getpid"), found);
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "there_is_no_such_function"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
}

TEST(DlHooks, to_the_C_library_the_program_itself_is_the_caller) {
  // Behind the program is the library with the hooks. Behind that library, no other defines the function.
  EXPECT_NE(dlsym(RTLD_NEXT, "HookedNext"), nullptr);
  EXPECT_NE(OldDlsym(RTLD_NEXT, "HookedNext"), nullptr);
}

TEST(DlHooks, the_shim_is_notified_that_a_library_was_unloaded) {
  constexpr const char* kOfNobody = "libresolv.so.2";
  const int before = HookedLibrariesUnloaded();
  using Close = int (*)(void*);
  for (const Close close : {Close{&dlclose}, Close{&OldDlclose}}) {
    ASSERT_EQ(dlopen(kOfNobody, RTLD_LAZY | RTLD_NOLOAD), nullptr) << "the test needs another library";
    void* library = dlopen(kOfNobody, RTLD_LAZY);
    ASSERT_NE(library, nullptr);
    EXPECT_EQ(close(library), 0);
  }
  EXPECT_EQ(HookedLibrariesUnloaded() - before, 2);
}

// XSched itself closes libraries when it looks for the callers of functions.
TEST(DlHooks, it_is_not_notified_of_a_closed_library_that_stays) {
  dlclose(dlopen("libm.so.6", RTLD_LAZY));
  const int before = HookedLibrariesUnloaded();
  dlclose(dlopen("libm.so.6", RTLD_LAZY));
  EXPECT_EQ(HookedLibrariesUnloaded(), before);
}

}  // namespace
