// A test with a real xserver beside it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::server::testing {

// Set by the build: the xserver under test.
inline constexpr const char* kServerProgram = XSERVER_PROGRAM;

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() : server_(kServerProgram, SocketIn(folder_), {"--user", "--log-level", "info"}) {}

  void SetUp() override { ASSERT_TRUE(server_.ready()) << server_.errors(); }
  static std::string SocketIn(const TempFolder& folder) { return folder.path() + "/xserver.sock"; }
  ipc::SocketPath socket() const { return server_.socket(); }

  // Checks that a connected client is still served.
  void ExpectServed(TestAgent& agent) { EXPECT_TRUE(agent.IsAlive()) << server_.errors(); }

  TempFolder folder_;
  ServerProcess server_;
};

}  // namespace xsched::server::testing
