#include "server/quotas.h"

#include <gtest/gtest.h>

#include <deque>

#include "server/limits.h"

namespace xsched::server {
namespace {

using Shares = std::deque<Quotas::ConnectionShare>;

constexpr uid_t kUser = 1000;
constexpr uid_t kOther = 1001;
constexpr uint64_t kDevice = 7;

TEST(Quotas, a_user_with_too_many_unidentified_connections_does_not_keep_others_out) {
  Quotas quotas;
  Shares shares;
  while (quotas.MayConnect(kUser)) shares.emplace_back(quotas, kUser);
  EXPECT_EQ(shares.size(), kMaxUnidentifiedOfUser);
  EXPECT_TRUE(quotas.MayConnect(kOther));
}

TEST(Quotas, a_connection_that_says_hello_makes_room_for_one_more_and_only_once) {
  Quotas quotas;
  Shares shares;
  while (quotas.MayConnect(kUser)) shares.emplace_back(quotas, kUser);
  shares.front().Identify();
  shares.front().Identify();
  ASSERT_TRUE(quotas.MayConnect(kUser));
  shares.emplace_back(quotas, kUser);
  EXPECT_FALSE(quotas.MayConnect(kUser));
}

TEST(Quotas, a_user_has_so_many_connections_at_most_though_all_have_said_hello) {
  Quotas quotas;
  Shares shares;
  while (quotas.MayConnect(kUser)) shares.emplace_back(quotas, kUser).Identify();
  EXPECT_EQ(shares.size(), kMaxConnectionsOfUser);
  EXPECT_TRUE(quotas.MayConnect(kOther));
}

TEST(Quotas, a_user_has_fewer_connections_where_the_server_has_few_descriptors) {
  Quotas quotas(3);
  Shares shares;
  while (quotas.MayConnect(kUser)) shares.emplace_back(quotas, kUser).Identify();
  EXPECT_EQ(shares.size(), 3u);
  EXPECT_TRUE(quotas.MayConnect(kOther));
}

TEST(Quotas, users_together_have_so_many_queues_at_most) {
  Quotas quotas;
  Shares shares;
  size_t queues = 0;
  for (uid_t user = kUser; user < kUser + 6; ++user) {
    shares.emplace_back(quotas, user);
    for (; quotas.MayAddQueue(user, kDevice); ++queues) quotas.AddQueue(user, kDevice);
  }
  EXPECT_EQ(queues, kMaxQueues);
  quotas.RemoveQueue(kUser, kDevice);
  EXPECT_TRUE(quotas.MayAddQueue(kUser + 5, kDevice));
}

TEST(Quotas, users_together_have_so_many_unidentified_connections_at_most) {
  Quotas quotas;
  Shares shares;
  for (uid_t user = kUser; shares.size() < kMaxUnidentified - kReservedForAdmins; ++user) {
    while (quotas.MayConnect(user)) shares.emplace_back(quotas, user);
  }
  EXPECT_EQ(shares.size(), kMaxUnidentified - kReservedForAdmins);
  EXPECT_FALSE(quotas.MayConnect(1)) << "a user without any";
  shares.front().Identify();
  EXPECT_TRUE(quotas.MayConnect(1));
}

TEST(Quotas, users_together_have_so_many_connections_at_most) {
  Quotas quotas;
  Shares shares;
  for (uid_t user = kUser; shares.size() < kMaxConnections - kReservedForAdmins; ++user) {
    while (quotas.MayConnect(user)) shares.emplace_back(quotas, user).Identify();
  }
  EXPECT_EQ(shares.size(), kMaxConnections - kReservedForAdmins);
  EXPECT_FALSE(quotas.MayConnect(1)) << "a user without any";
}

TEST(Quotas, administrators_can_connect_when_others_have_all_that_they_may) {
  Quotas quotas;
  Shares shares;
  for (uid_t user = kUser; quotas.MayConnect(user); ++user) {
    while (quotas.MayConnect(user)) shares.emplace_back(quotas, user);
  }
  size_t admins = 0;
  for (; quotas.MayConnect(0, /*is_admin=*/true); ++admins) shares.emplace_back(quotas, 0);
  EXPECT_EQ(admins, kReservedForAdmins);
}

TEST(Quotas, what_a_connection_counted_for_is_given_back_when_it_goes_identified_or_not) {
  Quotas quotas;
  for (int i = 0; i < 3; ++i) {
    Shares shares;
    while (quotas.MayConnect(kUser)) shares.emplace_back(quotas, kUser);
    EXPECT_EQ(shares.size(), kMaxUnidentifiedOfUser);
    for (size_t share = 0; share < shares.size(); share += 2) shares[share].Identify();
  }
}

TEST(Quotas, a_share_that_has_moved_is_given_back_once) {
  Quotas quotas;
  Shares shares;
  while (shares.size() + 1 < kMaxUnidentifiedOfUser) shares.emplace_back(quotas, kUser);
  {
    Quotas::ConnectionShare share(quotas, kUser);
    Quotas::ConnectionShare moved(std::move(share));
    EXPECT_FALSE(quotas.MayConnect(kUser));
  }
  shares.emplace_back(quotas, kUser);
  EXPECT_FALSE(quotas.MayConnect(kUser));
}

TEST(Quotas, queues_are_bounded_per_user) {
  Quotas quotas;
  Quotas::ConnectionShare share(quotas, kUser);
  Quotas::ConnectionShare others(quotas, kOther);
  size_t queues = 0;
  for (; quotas.MayAddQueue(kUser, kDevice); ++queues) quotas.AddQueue(kUser, kDevice);
  EXPECT_EQ(queues, kMaxQueuesOfUser);
  EXPECT_TRUE(quotas.MayAddQueue(kOther, kDevice));
  quotas.RemoveQueue(kUser, kDevice);
  EXPECT_TRUE(quotas.MayAddQueue(kUser, kDevice));
}

TEST(Quotas, the_devices_of_a_users_queues_are_bounded) {
  Quotas quotas;
  Quotas::ConnectionShare share(quotas, kUser);
  uint64_t device = 0;
  for (; quotas.MayAddQueue(kUser, device); ++device) quotas.AddQueue(kUser, device);
  EXPECT_EQ(device, kMaxDevicesOfUser);
  EXPECT_TRUE(quotas.MayAddQueue(kUser, 0)) << "a device that the user has already";
  quotas.RemoveQueue(kUser, 0);
  EXPECT_TRUE(quotas.MayAddQueue(kUser, device));
}

TEST(Quotas, the_first_refused_queue_is_reported_once_for_as_long_as_the_user_is_connected) {
  Quotas quotas;
  {
    Quotas::ConnectionShare share(quotas, kUser);
    EXPECT_TRUE(quotas.RefuseQueue(kUser));
    EXPECT_FALSE(quotas.RefuseQueue(kUser));
  }
  Quotas::ConnectionShare again(quotas, kUser);
  EXPECT_TRUE(quotas.RefuseQueue(kUser));
}

}  // namespace
}  // namespace xsched::server
