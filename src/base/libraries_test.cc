#include "base/libraries.h"

#include <gtest/gtest.h>
#include <string.h>

namespace xsched {
namespace {

int own_variable;

TEST(Libraries, are_found_by_what_they_hold) {
  void* in_libc = dlsym(RTLD_DEFAULT, "getpid");
  ASSERT_NE(LibraryAt(in_libc), nullptr);
  EXPECT_NE(strstr(LibraryAt(in_libc)->l_name, "libc.so"), nullptr);
  ASSERT_NE(LibraryAt(&own_variable), nullptr);
  EXPECT_STREQ(LibraryAt(&own_variable)->l_name, "") << "the program";
  int local;
  EXPECT_EQ(LibraryAt(&local), nullptr) << "the stack is no library's";
}

TEST(Libraries, that_are_loaded_have_a_handle) {
  void* in_libc = dlsym(RTLD_DEFAULT, "getpid");
  EXPECT_EQ(dlsym(OpenLibrary(LibraryAt(in_libc)).handle(), "getpid"), in_libc);
  EXPECT_NE(OpenLibrary(LibraryAt(&own_variable)).handle(), nullptr);
  EXPECT_EQ(OpenLibrary(static_cast<const link_map*>(nullptr)).handle(), nullptr);
}

}  // namespace
}  // namespace xsched
