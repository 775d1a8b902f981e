// The start and end of a server, its options, and other servers at the same path.
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "server/testing/server_fixture.h"

namespace xsched::server::testing {
namespace {

using namespace std::chrono_literals;

class Lifecycle : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/sub/xserver.sock"; }
  bool SocketExists() const {
    struct stat status {};
    return stat(path().c_str(), &status) == 0;
  }
  std::string WriteConfig(const std::string& text) const {
    std::string file = folder_.path() + "/config.json";
    std::ofstream(file) << text;
    return file;
  }
  // Starts a server that is expected to fail. Returns its message.
  std::string Refusal(const std::vector<std::string>& arguments, int exit_code = 1) const {
    mkdir((folder_.path() + "/sub").c_str(), 0700);
    ServerProcess server(kServerProgram, path(), arguments);
    EXPECT_FALSE(server.ready());
    EXPECT_EQ(server.WaitForExit(), exit_code);
    return server.errors();
  }

  TempFolder folder_;
};

TEST_F(Lifecycle, it_makes_the_sockets_folder_and_removes_the_socket_when_a_signal_ends_it) {
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) {
    mkdir((folder_.path() + "/sub").c_str(), 0755);
    ServerProcess server(kServerProgram, path(), {"--user"});
    ASSERT_TRUE(server.ready()) << server.errors();
    EXPECT_TRUE(SocketExists());
    server.Signal(signal);
    EXPECT_EQ(server.WaitForExit(), 0);
    EXPECT_FALSE(SocketExists());
  }
}

TEST_F(Lifecycle, a_second_server_says_so_and_leaves_the_first_alone) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  ServerProcess first(kServerProgram, path(), {"--user"});
  ASSERT_TRUE(first.ready()) << first.errors();
  ServerProcess second(kServerProgram, path(), {"--user"});
  EXPECT_FALSE(second.ready());
  EXPECT_EQ(second.WaitForExit(), 3);
  EXPECT_NE(second.errors().find("running at " + path() + " already"), std::string::npos) << second.errors();
  EXPECT_TRUE(TestTool(first.socket()).Status());
}

TEST_F(Lifecycle, a_second_server_notices_the_first_even_when_the_lock_file_is_gone) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  ServerProcess first(kServerProgram, path(), {"--user"});
  ASSERT_TRUE(first.ready()) << first.errors();
  ASSERT_EQ(unlink((path() + ".lock").c_str()), 0);
  ServerProcess second(kServerProgram, path(), {"--user"});
  EXPECT_EQ(second.WaitForExit(), 3);
  EXPECT_TRUE(TestTool(first.socket()).Status());
}

TEST_F(Lifecycle, a_server_takes_over_from_one_that_was_killed) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  {
    ServerProcess first(kServerProgram, path(), {"--user"});
    ASSERT_TRUE(first.ready());
    first.Signal(SIGKILL);
    EXPECT_EQ(first.WaitForExit(), -SIGKILL);
    EXPECT_TRUE(SocketExists());
  }
  ServerProcess second(kServerProgram, path(), {"--user"});
  ASSERT_TRUE(second.ready()) << second.errors();
  EXPECT_TRUE(TestTool(second.socket()).Status());
}

TEST_F(Lifecycle, clients_register_anew_with_the_next_server_and_keep_their_segment) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  auto first = std::make_unique<ServerProcess>(kServerProgram, path(), std::vector<std::string>{"--user"});
  ASSERT_TRUE(first->ready());
  TestAgent agent(first->socket());
  ASSERT_TRUE(agent.CreateQueue(0, 0));
  ASSERT_TRUE(agent.IsAlive());
  first->Signal(SIGKILL);
  ASSERT_EQ(first->WaitForExit(), -SIGKILL);
  EXPECT_TRUE(agent.IsClosedByServer());
  ServerProcess second(kServerProgram, path(), {"--user"});
  ASSERT_TRUE(second.ready());
  TestConnection again(second.socket());
  ASSERT_TRUE(again.Send(HelloOf(ipc::Role::kAgent), {agent.memfd(), agent.bell()}));
  EXPECT_TRUE(again.ReceiveA<ipc::Welcome>());
}

TEST_F(Lifecycle, what_lies_at_the_path_and_is_not_a_socket_stays) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  std::ofstream(path()) << "precious";
  EXPECT_NE(Refusal({"--user"}).find("not a socket"), std::string::npos);
  std::string text;
  std::ifstream(path()) >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(Lifecycle, a_folder_in_which_others_could_put_a_socket_is_refused) {
  std::string folder = folder_.path() + "/sub";
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  for (mode_t mode : {0777, 0775, 01777}) {
    ASSERT_EQ(chmod(folder.c_str(), mode), 0);
    EXPECT_NE(Refusal({"--user"}).find("others may write to the folder " + folder), std::string::npos);
    unlink((path() + ".errors").c_str());
  }
  if (geteuid() != 0) return;
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(chown(folder.c_str(), 54321, 54321), 0);
  // A file that its owner has put at the socket's path stays unchanged.
  std::string target = folder_.path() + "/precious";
  std::ofstream(target) << "precious";
  ASSERT_EQ(chmod(target.c_str(), 0600), 0);
  ASSERT_EQ(symlink(target.c_str(), path().c_str()), 0);
  EXPECT_NE(Refusal({"--system", "--group", "daemon"}).find("belongs to user 54321"), std::string::npos);
  struct stat status {};
  ASSERT_EQ(stat(target.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(status.st_gid, getegid());
}

TEST_F(Lifecycle, its_socket_has_the_mode_and_the_group_that_were_asked_for_whatever_the_umask) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  for (mode_t mask : {0077, 0000}) {
    mode_t old_mask = umask(mask);
    ServerProcess server(kServerProgram, path(), {"--user", "--mode", "0660", "--group", "root"});
    umask(old_mask);
    ASSERT_TRUE(server.ready()) << server.errors();
    struct stat status {};
    ASSERT_EQ(stat(path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0660u);
    EXPECT_EQ(status.st_gid, 0u);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.WaitForExit(), 0);
  }
}

TEST_F(Lifecycle, it_ends_when_it_was_idle_for_the_given_time) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  ServerProcess server(kServerProgram, path(), {"--user", "--idle-exit", "1"});
  ASSERT_TRUE(server.ready());
  {
    TestAgent agent(server.socket());
    EXPECT_EQ(server.WaitForExit(1500), -1000) << "it left while it had a client";
    EXPECT_TRUE(agent.IsAlive());
  }
  EXPECT_EQ(server.WaitForExit(500), -1000);
  EXPECT_EQ(server.WaitForExit(2000), 0);
  EXPECT_FALSE(SocketExists());
}

TEST_F(Lifecycle, the_positional_arguments_of_older_versions_are_understood) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  ServerProcess server(kServerProgram, path(), {"UP", "50000", "--user"});
  ASSERT_TRUE(server.ready()) << server.errors();
  EXPECT_EQ(TestTool(server.socket()).Status()->policy, static_cast<uint32_t>(kPolicyUtilizationPartition));
  // Whether it could serve there or not.
  EXPECT_NE(server.errors().find("50000"), std::string::npos) << server.errors();
}

TEST_F(Lifecycle, a_port_is_a_number_even_if_nobody_uses_it) {
  for (const char* port : {"port", "0", "65536", "80x", "6.5", ""}) {
    EXPECT_NE(Refusal({"HPF", port, "--user"}, 2).find("PORT"), std::string::npos) << port;
    unlink((path() + ".errors").c_str());
  }
}

TEST_F(Lifecycle, the_command_line_goes_over_the_configuration_file) {
  mkdir((folder_.path() + "/sub").c_str(), 0755);
  std::string config = WriteConfig(R"({"policy": "UP", "timeslice_us": 3000, "mode": "0640"})");
  ServerProcess server(kServerProgram, path(), {"--user", "--config", config, "--timeslice-us", "7000"});
  ASSERT_TRUE(server.ready()) << server.errors();
  auto status = TestTool(server.socket()).Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->policy, static_cast<uint32_t>(kPolicyUtilizationPartition));
  EXPECT_EQ(status->timeslice_us, 7000);
  struct stat file {};
  ASSERT_EQ(stat(path().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0640u);
}

// Users of the server are its own user only, so this tenant has all of them.
constexpr const char* kMine = "[[tenant]]\nname = \"mine\"\neach = \"user\"\n";

class ReloadedTenants : public Lifecycle {
 protected:
  ReloadedTenants() { mkdir((folder_.path() + "/sub").c_str(), 0755); }

  std::string rules() const { return folder_.path() + "/tenants.toml"; }
  void WriteRules(const std::string& text) const { std::ofstream(rules()) << text; }
  // Reads the file again. Waits until the server has said this.
  static void ReloadUntil(const ServerProcess& server, const std::string& said) {
    server.Signal(SIGHUP);
    EXPECT_TRUE(Eventually([&] { return server.errors().find(said) != std::string::npos; }))
        << said << "\n"
        << server.errors();
  }
  static std::string TenantOf(const ServerProcess& server) {
    const std::optional<ipc::Status> status = TestTool(server.socket()).Status();
    return status ? status->tenant : "";
  }
};

TEST_F(ReloadedTenants, a_file_given_by_name_that_is_missing_is_refused_and_the_old_rules_stay) {
  WriteRules(kMine);
  const std::vector<std::string> given[] = {
      {"--user", "--tenants", rules()},
      {"--user", "--config", WriteConfig("{\"tenants\": \"" + rules() + "\"}")}};
  for (const std::vector<std::string>& arguments : given) {
    WriteRules(kMine);
    ServerProcess server(kServerProgram, path(), arguments);
    ASSERT_TRUE(server.ready()) << server.errors();
    const std::string tenant = "mine/" + std::to_string(geteuid());
    EXPECT_EQ(TenantOf(server), tenant);
    ASSERT_EQ(unlink(rules().c_str()), 0);
    ReloadUntil(server, "refused (cannot read " + rules() + ": No such file");
    EXPECT_EQ(TenantOf(server), tenant);
    WriteRules("");
    ReloadUntil(server, ": allowed");
    EXPECT_EQ(TenantOf(server), "uid:" + std::to_string(geteuid()));
  }
}

TEST_F(ReloadedTenants, the_audit_says_who_reloaded_the_file_and_what_changed) {
  WriteRules(kMine);
  ServerProcess server(kServerProgram, path(), {"--user", "--tenants", rules()});
  ASSERT_TRUE(server.ready()) << server.errors();
  const std::string who = "pid " + std::to_string(getpid()) + " (user " + std::to_string(getuid()) +
                          "): tenants of " + rules() + ": ";
  WriteRules("[default]\nweight = 50\n[[tenant]]\nname = \"other\"\neach = \"user\"\n");
  ReloadUntil(server, who + "1 entry -> 1 entry, added other; removed mine; changed [default]: allowed");
  WriteRules("wieght = 1\n");
  ReloadUntil(server, who + "refused (" + rules() + ":1: ");
}

TEST_F(Lifecycle, bad_settings_are_clear_errors) {
  const char* bad[][2] = {
      {R"({"policy": "XYZ"})", "XYZ"},       {R"({"timeslice_us": 1})", "timeslice_us"},
      {R"({"color": "red"})", "color"},      {R"({"mode": "rw-r"})", "rw-r"},
      {R"({"grace_us": "long"})", "config"}, {R"([1, 2])", "object"},
      {R"({"policy": )", "config"},          {R"({"admin_group": "no-such-group-here"})", "no-such-group"},
      {R"({"idle_exit": -1})", "idle_exit"}, {R"({"log_level": "loud"})", "log_level"},
  };
  for (auto& [text, clue] : bad) {
    std::string said = Refusal({"--user", "--config", WriteConfig(text)});
    EXPECT_NE(said.find(clue), std::string::npos) << text << " -> " << said;
    unlink((path() + ".errors").c_str());
  }
  EXPECT_NE(Refusal({"--config", "/nowhere/at/all.json"}).find("/nowhere"), std::string::npos);
}

TEST_F(Lifecycle, a_setting_of_the_wrong_type_is_named_with_what_it_must_be) {
  const char* bad[][2] = {
      {R"({"timeslice_us": "2000"})", "timeslice_us must be a whole number, not \"2000\""},
      {R"({"timeslice_us": true})", "timeslice_us must be a whole number, not true"},
      {R"({"timeslice_us": 2000.7})", "timeslice_us must be a whole number, not 2000.7"},
      {R"({"timeslice_us": 18446744073709551615})", "timeslice_us must be from"},
      {R"({"mode": 600})", "mode must be a text in quotation marks, not 600"},
      {R"({"mode": ""})", "mode must be an octal file mode"},
      {R"({"socket": ""})", "socket must not be empty"},
      {R"({"tenants": ""})", "tenants must not be empty"},
      {R"({"metrics": [1]})", "metrics must be a port or a path"},
      {R"({"k": null})", "k must be a whole number, not null"},
      {R"({"policy": )", "it is not JSON: parse error at line 1"},
  };
  for (auto& [text, clue] : bad) {
    const std::string said = Refusal({"--user", "--config", WriteConfig(text)});
    EXPECT_NE(said.find(folder_.path() + "/config.json: " + clue), std::string::npos)
        << text << " -> " << said;
    EXPECT_EQ(said.find("json.exception"), std::string::npos) << said;
    unlink((path() + ".errors").c_str());
  }
}

TEST_F(Lifecycle, an_empty_value_of_an_option_is_wrong_usage) {
  for (const char* option : {"--socket", "--mode", "--group", "--admin-group", "--config", "--tenants",
                             "--by", "--metrics-group", "--policy", "--log-level", "--k"}) {
    EXPECT_NE(Refusal({"--user", option, ""}, 2).find(std::string(option) + ": it must not be empty"),
              std::string::npos);
    unlink((path() + ".errors").c_str());
  }
  EXPECT_NE(Refusal({"--user", ""}, 2).find("POLICY: it must not be empty"), std::string::npos);
}

TEST_F(Lifecycle, an_empty_value_is_not_taken_for_one_that_was_left_out) {
  for (const char* option : {"--metrics", "--http"}) {
    EXPECT_NE(Refusal({"--user", option, ""}, 2).find(&option[2]), std::string::npos);
    unlink((path() + ".errors").c_str());
  }
}

TEST_F(Lifecycle, a_wrong_value_of_an_option_is_wrong_usage) {
  const std::vector<std::string> bad[] = {{"--policy", "XYZ"},   {"XYZ"},
                                          {"--mode", "888"},     {"--log-level", "loud"},
                                          {"--k", "0"},          {"--timeslice-us", "1"},
                                          {"--metrics", "abc"},  {"--grace-us", "-1"},
                                          {"--idle-exit", "-1"}, {"--by", "color"},
                                          {"--no-such-option"},  {"--process-grace-us", "-1"},
                                          {"--history", "-1"}};
  for (std::vector<std::string> arguments : bad) {
    const std::string value = arguments.back();
    arguments.emplace_back("--user");
    const std::string said = Refusal(arguments, 2);
    EXPECT_TRUE(said.starts_with("xserver: ") && said.ends_with(" (see xserver --help)\n")) << value << said;
    unlink((path() + ".errors").c_str());
  }
}

}  // namespace
}  // namespace xsched::server::testing
