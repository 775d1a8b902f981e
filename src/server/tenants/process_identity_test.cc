#include "server/tenants/process_identity.h"

#include <gtest/gtest.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace xsched::server {
namespace {

const std::string kId(64, 'a');

ProcessIdentity In(const std::string& path) { return IdentityIn("0::" + path + "\n"); }

TEST(ProcessIdentity, a_service_is_known_by_its_control_group) {
  EXPECT_EQ(In("/system.slice/serve.service"), (ProcessIdentity{.cgroup = "/system.slice/serve.service"}));
}

TEST(ProcessIdentity, containers_of_each_engine_are_known_by_their_ids) {
  for (const std::string& path :
       {"/system.slice/docker-" + kId + ".scope", "/docker/" + kId, "/machine.slice/libpod-" + kId + ".scope",
        "/machine.slice/libpod-" + kId + ".scope/container", "/system.slice/containerd-" + kId + ".scope",
        "/system.slice/nerdctl-" + kId + ".scope", "/libpod_parent/libpod-" + kId}) {
    EXPECT_EQ(In(path).container, kId) << path;
    EXPECT_EQ(In(path).cgroup, path);
  }
}

TEST(ProcessIdentity, containers_in_a_pod_of_podman_are_known_by_their_ids) {
  const std::string pod(64, 'b');
  const std::string by_systemd = "/machine.slice/machine-libpod_pod_" + pod + ".slice";
  for (const std::string& path :
       {by_systemd + "/libpod-" + kId + ".scope", by_systemd + "/libpod-" + kId + ".scope/container",
        "/libpod_parent/" + pod + "/libpod-" + kId}) {
    EXPECT_EQ(In(path).container, kId) << path;
  }
  EXPECT_EQ(In("/machine.slice/serve.service/libpod-" + kId + ".scope").container, "")
      << "below a service, names are its own";
}

TEST(ProcessIdentity, pods_and_their_containers_are_known_with_either_driver_of_control_groups) {
  const std::string uid = "1b2c3d4e-0001-4002-8003-123456789abc";
  const std::string by_systemd = "kubepods-burstable-pod1b2c3d4e_0001_4002_8003_123456789abc.slice";
  for (const std::string& path :
       {"/kubepods/burstable/pod" + uid + "/" + kId, "/kubepods/pod" + uid + "/" + kId,
        "/kubepods.slice/kubepods-burstable.slice/" + by_systemd + "/cri-containerd-" + kId + ".scope",
        "/kubepods.slice/kubepods-burstable.slice/" + by_systemd + "/crio-" + kId + ".scope"}) {
    EXPECT_EQ(In(path).pod, uid) << path;
    EXPECT_EQ(In(path).container, kId) << path;
  }
}

// From /kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod….slice/cri-containerd-….scope.
TEST(ProcessIdentity, pods_are_known_to_a_server_that_runs_in_one_itself) {
  const std::string uid = "1b2c3d4e-0001-4002-8003-123456789abc";
  const std::string burstable = "kubepods-burstable-pod1b2c3d4e_0001_4002_8003_123456789abc.slice";
  const std::string besteffort = "kubepods-besteffort-pod1b2c3d4e_0001_4002_8003_123456789abc.slice";
  const std::string guaranteed = "kubepods-pod1b2c3d4e_0001_4002_8003_123456789abc.slice";
  const std::string container = "/cri-containerd-" + kId + ".scope";
  for (const std::string& path :
       {"/../../../kubepods-burstable.slice/" + burstable + container, "/../../" + besteffort + container,
        "/../../../" + guaranteed + container, "/../../../kubepods.slice/" + guaranteed + container,
        "/../../pod" + uid + "/" + kId, "/../../burstable/pod" + uid + "/" + kId}) {
    EXPECT_EQ(In(path).pod, uid) << path;
    EXPECT_EQ(In(path).container, kId) << path;
    EXPECT_EQ(In(path).cgroup, path);
  }
  EXPECT_EQ(In("/../../../../user.slice/kubepods.slice/" + guaranteed + container).pod, "");
  EXPECT_EQ(In("/" + guaranteed + container).pod, "") << "a group of that name elsewhere";
  EXPECT_EQ(In("/..kubepods.slice/" + guaranteed).pod, "");
  EXPECT_EQ(In("/pod" + uid + "/" + kId).pod, "");
}

TEST(ProcessIdentity, neighbor_containers_are_known_to_a_server_with_a_namespace_of_its_own) {
  for (const std::string& path :
       {"/../docker-" + kId + ".scope", "/../" + kId, "/../../libpod-" + kId + ".scope/container"})
    EXPECT_EQ(In(path).container, kId) << path;
  EXPECT_EQ(In("/docker-" + kId + ".scope").container, "") << "a group of the server's own";
}

TEST(ProcessIdentity, groups_are_known_from_the_root_to_a_server_with_a_namespace_of_its_own) {
  const std::string init = "0::/../../init.scope\n";
  const auto group = [&](const std::string& path) { return IdentityIn("0::" + path + "\n", init).cgroup; };
  EXPECT_EQ(group("/../../system.slice/serve.service"), "/system.slice/serve.service");
  EXPECT_EQ(group("/../.."), "/");
  EXPECT_EQ(group("/../serve.service"), "/../serve.service") << "the name of what is above is not known";
  EXPECT_EQ(group("/serve.service"), "/serve.service") << "a group of the server's own";
}

TEST(ProcessIdentity, jobs_of_slurm_are_known_with_either_version_of_control_groups) {
  EXPECT_EQ(In("/system.slice/slurmstepd.scope/job_123/step_0/user/task_0").job, "123");
  EXPECT_EQ(In("/system.slice/node1_slurmstepd.scope/job_7/step_batch").job, "7");
  EXPECT_EQ(IdentityIn("9:memory:/slurm/uid_1000/job_42/step_0\n0::/\n").job, "42");
  EXPECT_EQ(
      IdentityIn("9:memory:/slurm_node1/uid_1000/job_42\n1:name=systemd:/system.slice/slurmd.service\n").job,
      "42");
}

// Users may make any control group below their own.
TEST(ProcessIdentity, names_that_a_user_can_make_mean_nothing) {
  const std::string own = "/user.slice/user-1000.slice/user@1000.service/";
  for (const std::string& path :
       {own + "docker-" + kId + ".scope", own + "system.slice/slurmstepd.scope/job_1",
        own + "kubepods/pod1b2c3d4e-0001-4002-8003-123456789abc/" + kId, own + "slurm/uid_0/job_1",
        own + "user.slice/libpod-" + kId + ".scope"}) {
    EXPECT_EQ(In(path), (ProcessIdentity{.cgroup = path}));
  }
}

TEST(ProcessIdentity, what_only_looks_like_a_container_a_job_or_a_pod_is_none) {
  for (const std::string& path :
       {std::string("/docker/short"), "/libpod_parent/libpod-conmon-" + kId, "/libpod-" + kId,
        "/docker/" + std::string(64, 'g'), std::string("/system.slice/slurmstepd.scope/job_x"),
        std::string("/system.slice/slurmstepd.scope"), std::string("/slurm/job_1"),
        std::string("/kubepods/burstable"), std::string("/")}) {
    EXPECT_EQ(In(path), (ProcessIdentity{.cgroup = path}));
  }
}

TEST(ProcessIdentity, nonsense_is_no_identity) {
  for (const char* text : {"", "\n\n", ":", "0:", "::", "no colon", "1:cpu:/docker"})
    EXPECT_EQ(IdentityIn(text).container + IdentityIn(text).job + IdentityIn(text).pod, "") << text;
}

class PeerTest : public testing::Test {
 protected:
  PeerTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    mine_.Reset(ends[0]);
    theirs_.Reset(ends[1]);
  }
  UniqueFd mine_;
  UniqueFd theirs_;
};

TEST_F(PeerTest, of_a_living_peer_is_the_one_that_the_kernel_says) {
  EXPECT_EQ(IdentityOfPeer(mine_.get(), getpid()).cgroup.front(), '/');
}

TEST_F(PeerTest, of_a_peer_whose_number_cannot_be_seen_is_none) {
  EXPECT_EQ(IdentityOfPeer(mine_.get(), 0), ProcessIdentity{});
}

// A message with a descriptor in it.
struct DescriptorMessage {
  DescriptorMessage() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
};

bool SendDescriptor(int channel, int fd) {
  DescriptorMessage sent;
  cmsghdr* rights = CMSG_FIRSTHDR(&sent.message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  return sendmsg(channel, &sent.message, 0) == 1;
}

UniqueFd ReceiveDescriptor(int channel) {
  DescriptorMessage received;
  int fd = -1;
  if (recvmsg(channel, &received.message, 0) == 1)
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&received.message)), sizeof fd);
  return UniqueFd(fd);
}

// The peer is the process that made the connection. When it has ended, another one may have its number.
TEST_F(PeerTest, one_that_has_ended_is_not_taken_for_the_process_that_has_its_number_now) {
  const pid_t child = fork();
  if (child == 0) {
    int ends[2];
    const bool made = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0;
    _exit(made && SendDescriptor(theirs_.get(), ends[0]) ? 0 : 1);
  }
  const UniqueFd socket = ReceiveDescriptor(mine_.get());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD
  if (getsockopt(socket.get(), SOL_SOCKET, kPeerPidfd, &pidfd, &size) != 0)
    GTEST_SKIP() << "this kernel has no descriptor for a peer that has ended";
  close(pidfd);
  // The number of a process that lives stands for the number of the ended one.
  EXPECT_EQ(IdentityOfPeer(socket.get(), getpid()), ProcessIdentity{});
}

}  // namespace
}  // namespace xsched::server
