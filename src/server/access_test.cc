// What a process is on this machine, whatever its uid says.
#include "server/access.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <vector>

#include "base/fd.h"
#include "server/limits.h"
#include "server/process_state.h"

namespace xsched::server {
namespace {

constexpr uid_t kServerUser = 500;
constexpr gid_t kAdmins = 77;
constexpr uid_t kUser = 1000;
constexpr const char* kHere = "         0          0 4294967295\n";
constexpr const char* kContainer = "         0       1000          1\n";

std::string StatusOf(const std::string& pids, const std::string& capabilities) {
  return "Name:\tprogram\nNSpid:\t" + pids + "\nCapEff:\t" + capabilities + "\nSeccomp:\t0\n";
}
constexpr const char* kAllCapabilities = "000001ffffffffff";
constexpr const char* kOfContainer = "00000000a80425fb";  // what Docker leaves to root
constexpr const char* kNone = "0000000000000000";

// As the shipped unit's: a user of its own, without capabilities.
const ProcessTexts kServer{StatusOf("9", kNone), kHere};

bool Confined(const std::string& status, uid_t uid, const char* uid_map = kHere) {
  return IsConfined({status, uid_map}, kServer, uid, kServerUser);
}

TEST(Access, root_of_this_machine_is_not_confined) {
  EXPECT_FALSE(Confined(StatusOf("17", kAllCapabilities), 0));
}

TEST(Access, root_without_capabilities_is_confined) {
  EXPECT_TRUE(Confined(StatusOf("17", kNone), 0));
  EXPECT_TRUE(Confined(StatusOf("17", kOfContainer), 0));
  EXPECT_FALSE(Confined(StatusOf("17", kNone), kUser)) << "another user needs none";
}

TEST(Access, beside_a_server_that_is_root_without_capabilities_root_needs_none) {
  const ProcessTexts server{StatusOf("9", kOfContainer), kHere};
  EXPECT_FALSE(IsConfined({StatusOf("17", kOfContainer), kHere}, server, 0, 0));
  EXPECT_TRUE(IsConfined({StatusOf("17\t1", kOfContainer), kHere}, server, 0, 0)) << "in another container";
  const ProcessTexts full{StatusOf("9", kAllCapabilities), kHere};
  EXPECT_TRUE(IsConfined({StatusOf("17", kOfContainer), kHere}, full, 0, 0));
}

TEST(Access, a_process_in_another_pid_or_user_namespace_is_confined_whoever_it_says_it_is) {
  for (const uid_t user : {uid_t{0}, kServerUser, kUser}) {
    EXPECT_TRUE(Confined(StatusOf("17\t1", kAllCapabilities), user)) << user;
    EXPECT_TRUE(Confined(StatusOf("17", kAllCapabilities), user, kContainer)) << user;
  }
}

TEST(Access, a_process_that_cannot_be_seen_is_confined) {
  EXPECT_TRUE(IsConfined(0, 0));
  EXPECT_TRUE(Confined("", kUser));
}

TEST(Access, this_process_is_here) { EXPECT_FALSE(IsConfined(getpid(), getuid())); }

Peer Decided(Peer peer, bool confined) {
  const auto yes = [](pid_t, uid_t) { return true; };
  const auto no = [](pid_t, uid_t) { return false; };
  AccessRules(kServerUser, kAdmins, confined ? +yes : +no).Decide(peer);
  return peer;
}

TEST(Access, root_the_servers_user_and_the_admin_group_administrate_unless_they_are_confined) {
  const Peer peers[] = {{1, 0, {}}, {1, kServerUser, {}}, {1, kUser, {5, kAdmins}}};
  for (const Peer& peer : peers) {
    EXPECT_TRUE(AccessRules::IsAdmin(Decided(peer, false))) << peer.uid;
    EXPECT_FALSE(AccessRules::IsAdmin(Decided(peer, true))) << peer.uid;
  }
  EXPECT_FALSE(AccessRules::IsAdmin(Decided({1, kUser, {5}}, false)));
}

TEST(Access, a_confined_user_has_what_belongs_to_the_same_user) {
  const Peer peer = Decided({1, kUser, {}}, true);
  EXPECT_TRUE(AccessRules::MayTouch(peer, kUser));
  EXPECT_FALSE(AccessRules::MayTouch(peer, kServerUser));
}

TEST(Access, an_id_that_stands_for_several_users_owns_nothing) {
  Peer peer{1, kUser, {}};
  peer.has_no_user = true;
  EXPECT_FALSE(AccessRules::MayTouch(peer, kUser));
}

TEST(PeerOf, knows_all_groups_of_its_user_or_if_there_are_too_many_the_primary_one) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  std::vector<gid_t> own(static_cast<size_t>(getgroups(0, nullptr)));
  ASSERT_GE(getgroups(static_cast<int>(own.size()), own.data()), 0);
  const auto groups_of_peer_in = [&](size_t count) {
    std::vector<gid_t> groups(count);
    std::iota(groups.begin(), groups.end(), 100'000);
    EXPECT_EQ(setgroups(groups.size(), groups.data()), 0);
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    EXPECT_EQ(setgroups(own.size(), own.data()), 0);
    const UniqueFd first(ends[0]);
    const UniqueFd second(ends[1]);
    return PeerOf(first.get())->groups;
  };
  const std::vector<gid_t> all = groups_of_peer_in(kMaxGroups);
  EXPECT_EQ(all.size(), 1 + kMaxGroups);
  EXPECT_EQ(all.back(), 100'000 + kMaxGroups - 1);
  EXPECT_EQ(groups_of_peer_in(kMaxGroups + 1), std::vector<gid_t>{getegid()});
}

TEST(PeerOf, knows_when_its_process_began_which_tells_whether_it_has_ended) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd first(ends[0]);
  const UniqueFd second(ends[1]);
  EXPECT_EQ(PeerOf(first.get())->started, StartOf(getpid()));
  EXPECT_FALSE(HasEnded(*PeerOf(first.get()), StartOf(getpid())));
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const Peer peer{.pid = child, .uid = kUser, .started = StartOf(child)};
  const Peer came_too_late{.pid = child, .uid = kUser, .started = kNoProcess};
  EXPECT_FALSE(HasEnded(peer, StartOf(child)));
  EXPECT_TRUE(HasEnded(came_too_late, StartOf(child))) << "another process has its number";
  EXPECT_FALSE(HasEnded(peer, 0)) << "it cannot be seen";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(HasEnded(peer, StartOf(child)));
  EXPECT_TRUE(HasEnded(came_too_late, StartOf(child))) << "it had ended when it was looked at first";
  EXPECT_FALSE(HasEnded({.pid = child, .uid = kUser}, StartOf(child))) << "nobody has looked";
}

}  // namespace
}  // namespace xsched::server
