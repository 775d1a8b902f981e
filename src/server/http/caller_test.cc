#include "server/http/caller.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "base/fd.h"
#include "server/http/address.h"

namespace xsched::server::http {
namespace {

sockaddr_in At(const char* address, uint16_t port) {
  sockaddr_in end{};
  end.sin_family = AF_INET;
  end.sin_port = htons(port);
  inet_pton(AF_INET, address, &end.sin_addr);
  return end;
}

const sockaddr_in kClient = At("127.0.0.1", 0xabcd);
const sockaddr_in kServer = At("127.0.0.1", 0xc350);

std::optional<uid_t> UserIn(const std::string& row) {
  std::istringstream table(
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
      row);
  return UserInTable(table, kClient, kServer);
}

TEST(Caller, is_the_user_of_the_connections_other_end) {
  EXPECT_EQ(UserIn("   1: 0100007F:ABCD 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        "
                   "0 4711 1 x\n"),
            1000u);
  EXPECT_EQ(UserIn("   1: 0100007F:C350 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000  1000        "
                   "0 4711 1 x\n"),
            std::nullopt)
      << "that is our own end";
  EXPECT_EQ(UserIn("   1: 0200007F:ABCD 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        "
                   "0 4711 1 x\n"),
            std::nullopt);
}

TEST(Caller, may_use_a_socket_of_ipv6) {
  EXPECT_EQ(UserIn("   1: 0000000000000000FFFF00000100007F:ABCD 0000000000000000FFFF00000100007F:C350 01 "
                   "00000000:00000000 "
                   "00:00000000 00000000  1001        0 4711 1 x\n"),
            1001u);
}

// The kernel shows these with user 0.
TEST(Caller, of_a_connection_that_was_closed_is_not_root) {
  EXPECT_EQ(UserIn("   1: 0100007F:ABCD 0100007F:C350 05 00000000:00000000 00:00000000 00000000     0        "
                   "0 0 1 x\n"),
            std::nullopt);
  EXPECT_EQ(UserIn("   1: 0100007F:ABCD 0100007F:C350 06 00000000:00000000 00:00000000 00000000     0        "
                   "0 0 1 x\n"),
            std::nullopt);
  EXPECT_EQ(UserIn("   1: 0100007F:ABCD 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        "
                   "0 0 1 x\n"),
            std::nullopt);
}

TEST(Caller, is_not_found_in_a_table_that_is_none) {
  for (const char* row :
       {"", "\n\n", "   1: 0100007F:ABCD", "   1: 0100007F:ABCD 0100007F:C350 01 a b c x 0 4711\n"})
    EXPECT_EQ(UserIn(row), std::nullopt) << row;
}

TEST(Caller, is_found_in_the_kernels_own_table) {
  UniqueFd listening(ListenOnLoopback(0));
  sockaddr_in server{};
  socklen_t size = sizeof server;
  ASSERT_EQ(getsockname(listening.get(), reinterpret_cast<sockaddr*>(&server), &size), 0);
  EXPECT_EQ(server.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&server), size), 0);
  sockaddr_in ours{};
  size = sizeof ours;
  ASSERT_EQ(getsockname(client.get(), reinterpret_cast<sockaddr*>(&ours), &size), 0);
  EXPECT_EQ(UserOfConnection(ours, server), getuid());
  client.Reset();
  EXPECT_EQ(UserOfConnection(ours, server), std::nullopt);
}

TEST(Caller, may_connect_as_the_sockets_mode_says) {
  struct stat socket {};
  socket.st_uid = 10;
  socket.st_gid = 20;
  const Peer owner{0, 10, {}};
  const Peer member{0, 11, {5, 20}};
  const Peer other{0, 12, {5}};
  const Peer root{0, 0, {}};
  struct {
    mode_t mode;
    bool owner, member, other;
  } cases[] = {{0600, true, false, false},
               {0660, true, true, false},
               {0666, true, true, true},
               {0606, true, false, true},
               {0, false, false, false}};
  for (const auto& is : cases) {
    socket.st_mode = is.mode;
    EXPECT_EQ(MayConnect(owner, socket), is.owner);
    EXPECT_EQ(MayConnect(member, socket), is.member);
    EXPECT_EQ(MayConnect(other, socket), is.other);
    EXPECT_TRUE(MayConnect(root, socket));
  }
}

}  // namespace
}  // namespace xsched::server::http
