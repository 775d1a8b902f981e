#include "base/driver_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace xsched {
namespace {

constexpr char kVariable[] = "XSCHED_TEST_LIB";
constexpr char kLoaded[] = "libc.so.6";
constexpr char kNotLoaded[] = "libresolv.so.2";

struct Functions {
  pid_t (*getppid)();
  pid_t (*nothing)();
  pid_t (*getpid)();
};

class DriverLibrary : public testing::Test {
 protected:
  ~DriverLibrary() override { unsetenv(kVariable); }
};

TEST_F(DriverLibrary, is_the_one_that_the_process_has_loaded) {
  EXPECT_EQ(OpenDriverLibrary(kVariable, kLoaded), dlopen(kLoaded, RTLD_LAZY));
}

TEST_F(DriverLibrary, is_never_loaded_where_nobody_asked_for_it) {
  EXPECT_EQ(OpenDriverLibrary(kVariable, kNotLoaded), nullptr);
}

TEST_F(DriverLibrary, is_the_one_that_the_user_names) {
  EXPECT_EQ(OpenNamedLibrary(kVariable), nullptr) << "nobody named one";
  setenv(kVariable, kLoaded, 1);
  EXPECT_EQ(OpenNamedLibrary(kVariable), dlopen(kLoaded, RTLD_LAZY));
  EXPECT_EQ(OpenDriverLibrary(kVariable, kNotLoaded), dlopen(kLoaded, RTLD_LAZY));
}

TEST_F(DriverLibrary, that_the_user_names_and_that_is_not_there_is_passed_over) {
  setenv(kVariable, "/nowhere/libdriver.so", 1);
  EXPECT_EQ(OpenNamedLibrary(kVariable), nullptr);
  EXPECT_EQ(OpenDriverLibrary(kVariable, kLoaded), dlopen(kLoaded, RTLD_LAZY));
}

TEST_F(DriverLibrary, has_its_functions_found_by_their_names) {
  constexpr const char* kNames[] = {"getppid", "no_such_function_anywhere", "getpid"};
  Functions functions{nullptr, [] { return pid_t{0}; }, nullptr};
  FindFunctions(dlopen(kLoaded, RTLD_LAZY), kNames, 3, &functions);
  EXPECT_EQ(functions.getpid(), getpid());
  EXPECT_EQ(functions.nothing, nullptr);
  EXPECT_EQ(functions.getppid(), getppid());
}

TEST_F(DriverLibrary, a_program_that_asks_for_scheduling_and_has_no_shim_is_one_warning) {
  setenv("XSCHED_AUTO_XQUEUE", "ON", 1);
  testing::internal::CaptureStderr();
  WarnIfNotIntercepted("nowhere");
  WarnIfNotIntercepted("nowhere");
  const std::string said = testing::internal::GetCapturedStderr();
  unsetenv("XSCHED_AUTO_XQUEUE");
  EXPECT_EQ(said.find("xsched: libshimnowhere.so.2 is not loaded"), 0u) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_NE(said.find("xsched run"), std::string::npos);
}

}  // namespace
}  // namespace xsched
