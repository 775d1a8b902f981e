#include "server/connections.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "server/acceptor.h"
#include "server/event_tag.h"
#include "server/limits.h"
#include "server/listener.h"
#include "server/testing/lingering_socket.h"
#include "server/testing/server_parts.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

class ConnectionsTest : public ServerParts {
 protected:
  const Peer peer_{100, 1000, {}};
};

TEST_F(ConnectionsTest, a_connection_beyond_its_users_limit_is_closed_at_once_and_counted) {
  std::vector<Client> clients;
  while (clients.size() < kMaxUnidentifiedOfUser) clients.push_back(Connect(peer_));
  ASSERT_NE(clients.back().connection, nullptr);
  const Client refused = Connect(peer_);
  EXPECT_EQ(refused.connection, nullptr);
  ipc::Packet packet;
  EXPECT_EQ(ipc::ReceivePacket(refused.socket.get(), packet), ipc::Received::kClosed);
  EXPECT_EQ(connections_.rejected(), 1u);
  EXPECT_NE(Connect({200, 1001, {}}).connection, nullptr) << "another user";
}

TEST_F(ConnectionsTest, a_socket_that_cannot_be_watched_leaves_nothing_behind) {
  EXPECT_EQ(connections_.Add(UniqueFd(), peer_, now_), nullptr);
  EXPECT_TRUE(connections_.empty());
  std::vector<Client> clients;
  while (clients.size() < kMaxUnidentifiedOfUser) clients.push_back(Connect(peer_));
  EXPECT_NE(clients.back().connection, nullptr);
}

// What is in it takes 20 s to close.
TEST_F(ConnectionsTest, a_connection_for_which_there_is_no_descriptor_is_closed_at_once_whatever_is_in_it) {
  const TempFolder folder;
  Listener listener(folder.path() + "/s", 0600, std::nullopt);
  Acceptor acceptor(listener, loop_, connections_, access_);
  ipc::SocketPath path{};
  listener.path().copy(path.text, sizeof path.text - 1);
  Result<UniqueFd> client = ipc::ConnectToServer(path);
  ASSERT_TRUE(client);
  LingeringSocket slow;
  const int fd = slow.fd();
  ASSERT_TRUE(ipc::Send(client->get(), ipc::GetStatus{}, &fd, 1));
  slow.Release().Reset();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd lowest(dup(0));
  const rlimit none_left{static_cast<rlim_t>(lowest.get()) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const TimePoint began = MonotonicClock::now();
  acceptor.Accept(now_);
  const Duration took = MonotonicClock::now() - began;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(took, 5s);
  EXPECT_TRUE(connections_.empty());
  ipc::Packet packet;
  EXPECT_EQ(ipc::ReceivePacket(client->get(), packet), ipc::Received::kClosed);
}

TEST_F(ConnectionsTest, a_client_that_does_not_say_hello_is_closed_after_5_s_and_others_stay) {
  const Client silent = Connect(peer_);
  const Client tool = ConnectTool(peer_);
  now_ += 1s;
  const Client later = Connect(peer_);
  EXPECT_EQ(connections_.CloseUnidentified(now_ + 3999ms), now_ + 4s);
  EXPECT_FALSE(silent.connection->closed);
  EXPECT_EQ(connections_.CloseUnidentified(now_ + 4s), now_ + 5s);
  EXPECT_TRUE(silent.connection->closed);
  EXPECT_FALSE(tool.connection->closed || later.connection->closed);
  EXPECT_EQ(connections_.rejected(), 1u);
}

TEST_F(ConnectionsTest, a_closed_connection_stays_until_it_is_removed_and_is_forgotten_once) {
  const Client client = Connect(peer_);
  const uint64_t id = client.connection->id;
  connections_.Close(*client.connection, "a malformed message");
  connections_.Close(*client.connection, "a malformed message");
  EXPECT_TRUE(connections_.removal_due());
  EXPECT_EQ(connections_.Find(id), client.connection);
  int forgotten = 0;
  for (int round = 0; round < 2; ++round) {
    connections_.RemoveClosed(now_, [&](const Connection& connection) {
      EXPECT_EQ(connection.id, id);
      ++forgotten;
    });
  }
  EXPECT_EQ(forgotten, 1);
  EXPECT_EQ(connections_.Find(id), nullptr);
  EXPECT_FALSE(connections_.removal_due());
  EXPECT_EQ(connections_.rejected(), 1u);
}

TEST_F(ConnectionsTest, a_client_that_leaves_is_not_counted_as_rejected) {
  const Client client = Connect(peer_);
  connections_.Close(*client.connection, nullptr);
  RemoveClosed();
  EXPECT_EQ(connections_.rejected(), 0u);
}

TEST_F(ConnectionsTest, it_has_been_idle_since_its_last_client_was_removed) {
  EXPECT_EQ(connections_.idle_since(), now_);
  const Client first = Connect(peer_);
  const Client last = Connect(peer_);
  connections_.Close(*first.connection, nullptr);
  now_ += 1s;
  RemoveClosed();
  EXPECT_FALSE(connections_.empty());
  connections_.Close(*last.connection, nullptr);
  now_ += 1s;
  RemoveClosed();
  EXPECT_TRUE(connections_.empty());
  EXPECT_EQ(connections_.idle_since(), now_);
}

TEST_F(ConnectionsTest, an_event_of_a_socket_names_its_connection) {
  const Client client = Connect(peer_);
  EXPECT_TRUE(ipc::Send(client.socket.get(), ipc::GetStatus{}));
  const std::span<const uint64_t> events = loop_.Wait(0);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(SourceOf(events[0]), EventSource::kSocket);
  EXPECT_EQ(connections_.Find(ConnectionOf(events[0])), client.connection);
}

}  // namespace
}  // namespace xsched::server::testing
