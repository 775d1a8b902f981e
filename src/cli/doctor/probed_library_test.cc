#include "cli/doctor/probed_library.h"

#include <gtest/gtest.h>

#include <functional>

namespace xsched::cli {
namespace {

std::string ErrorName(void*, int error) { return "error " + std::to_string(error); }

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const ProbeError& error) {
    return error.text;
  }
  return "";
}

TEST(ProbedLibrary, has_functions_that_are_called_by_their_names) {
  const ProbedLibrary libc("libc.so.6", ErrorName);
  EXPECT_EQ(libc.Try("abs", -3), 3);
  EXPECT_EQ(ErrorOf([&] { libc.Call("abs", 0); }), "");
  EXPECT_EQ(ErrorOf([&] { libc.Call("abs", -3); }), "abs: error 3");
  EXPECT_EQ(ErrorOf([&] { libc.Call("no_such_function", 0); }), "no_such_function is missing");
}

TEST(ProbedLibrary, that_is_not_there_is_an_error) {
  EXPECT_NE(ErrorOf([] { ProbedLibrary("/nowhere/libdriver.so", ErrorName); }), "");
}

TEST(ProbeEach, goes_on_with_the_next_device_after_an_error) {
  const std::vector<ProbedDevice> devices = ProbeEach(3, [](int number, ProbedDevice& device) {
    device.name = std::to_string(number);
    if (number == 1) throw ProbeError{"lost"};
    device.scheduled = true;
  });
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[1].name, "1") << "what is known of it stays";
  EXPECT_EQ(devices[1].error, "lost");
  EXPECT_FALSE(devices[1].scheduled);
  EXPECT_EQ(devices[2].error, "");
  EXPECT_TRUE(devices[2].scheduled);
}

}  // namespace
}  // namespace xsched::cli
