// A program that is started with what the device plugin gave to its container, scheduled by a real server.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "cli/testing/tool.h"
#include "kubernetes/testing/agent_process.h"
#include "kubernetes/testing/fake_kubelet.h"
#include "server/testing/server_process.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;
using testing::AgentProcess;
using testing::FakeKubelet;

// What an engine does to a container, without one: paths of the container are replaced by those of the
// machine.
struct Container {
  std::map<std::string, std::string> variables;
  std::map<std::string, std::string> mounts;  // by their paths in the container

  void Apply(const json& edits) {
    for (const std::string entry : edits.value("env", json::array()))
      variables[entry.substr(0, entry.find('='))] = entry.substr(entry.find('=') + 1);
    for (const json& mount : edits.value("mounts", json::array()))
      mounts[mount.at("containerPath")] = mount.at("hostPath");
  }
  std::string OnMachine(std::string text) const {
    for (const auto& [inside, outside] : mounts) {
      for (size_t at; (at = text.find(inside)) != std::string::npos;)
        text.replace(at, inside.size(), outside);
    }
    return text;
  }
};

Container ContainerOf(const v1beta1::ContainerAllocateResponse& given, const std::string& cdi_folder) {
  Container container;
  for (const auto& [name, value] : given.envs()) container.variables[name] = value;
  for (const v1beta1::Mount& mount : given.mounts())
    container.mounts[mount.container_path()] = mount.host_path();
  for (const v1beta1::CDIDevice& device : given.cdi_devices()) {
    const json specification = json::parse(std::ifstream(cdi_folder + "/xsched-share.json"));
    container.Apply(specification.at("containerEdits"));
    for (const json& known : specification.at("devices")) {
      if (specification.at("kind").get<std::string>() + "=" + known.at("name").get<std::string>() ==
          device.name())
        container.Apply(known.at("containerEdits"));
    }
  }
  return container;
}

class Program {
 public:
  explicit Program(const Container& container) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const auto& [name, value] : container.variables)
      setenv(name.c_str(), container.OnMachine(value).c_str(), 1);
    execl(LATENCY_TASK, LATENCY_TASK, "--continuous", "--seconds", "60", nullptr);
    _exit(127);
  }
  ~Program() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

json QueueOf(pid_t pid, const std::string& socket) {
  for (int i = 0; i < 200; ++i) {
    const auto list = cli::testing::RunXsched({"list", "--json", "--pid", std::to_string(pid)},
                                              {{"XSCHED_SOCKET", socket}});
    const json queues = json::parse(list.out, nullptr, false);
    if (queues.is_array() && !queues.empty()) return queues[0];
    SleepFor(std::chrono::milliseconds(50));
  }
  return json::object();
}

class KubernetesShare : public ::testing::TestWithParam<const char*> {};

TEST_P(KubernetesShare, of_a_container_is_what_its_program_has_on_the_server) {
  const server::testing::TempFolder folder;
  const std::string socket = folder.path() + "/run/xserver.sock";
  const std::string kubelet_folder = folder.path() + "/device-plugins";
  std::filesystem::create_directories(kubelet_folder);
  std::filesystem::create_directories(folder.path() + "/run");
  const server::testing::ServerProcess server(XSERVER_PROGRAM, socket);
  ASSERT_TRUE(server.ready()) << server.errors();
  FakeKubelet kubelet(kubelet_folder);
  std::vector<std::string> arguments = {"devices",
                                        "--device",
                                        "cpu0",
                                        "--kubelet-folder",
                                        kubelet_folder,
                                        "--cdi-folder",
                                        folder.path() + "/cdi"};
  if (*GetParam() != '\0') arguments.emplace_back(GetParam());
  const AgentProcess agent(arguments, socket);

  grpc::ClientContext context;
  v1beta1::AllocateRequest request;
  for (int i = 0; i < 30; ++i) {
    if (i == 0) request.add_container_requests();
    request.mutable_container_requests(0)->add_devices_ids("cpu0::" + std::to_string(i));
  }
  v1beta1::AllocateResponse answer;
  ASSERT_TRUE(kubelet.Plugin()->Allocate(&context, request, &answer).ok()) << agent.said();
  const Program program(ContainerOf(answer.container_responses(0), folder.path() + "/cdi"));

  const json queue = QueueOf(program.pid(), socket);
  ASSERT_TRUE(queue.contains("utilization")) << agent.said() << server.errors();
  EXPECT_EQ(queue["utilization"], 30);
  EXPECT_EQ(queue["weight"], 30);
  EXPECT_EQ(queue["guarantee_us"], 0);
}

INSTANTIATE_TEST_SUITE_P(By, KubernetesShare, ::testing::Values("", "--without-cdi"),
                         [](const auto& by) { return *by.param == '\0' ? "cdi" : "variables_and_mounts"; });

}  // namespace
}  // namespace xsched::kubernetes
