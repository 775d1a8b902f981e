#include "base/fork_handler.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace xsched {
namespace {

std::string events;

constinit ForkHandler handler = {.in_child = [] { events += "child "; },
                                 .before = [] { events += "before "; },
                                 .in_parent = [] { events += "parent "; }};

TEST(ForkHandler, runs_once_around_each_fork_after_it_was_installed) {
  handler.Install();
  handler.Install();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(events == "before child " ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child saw something else";
  EXPECT_EQ(events, "before parent ");
}

}  // namespace
}  // namespace xsched
