// xserver with its HTTP interface, over real sockets.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/fd.h"
#include "server/http/address.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::server::testing {
namespace {

using nlohmann::json;

constexpr uid_t kStranger = 54321;

// A port that is free now.
int FreePort() {
  UniqueFd listening(http::ListenOnLoopback(0));
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

const json kHpf = {{"policy", 1}, {"setting", "HPF"}, {"k", 1}};

class Http : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.ready()) << server_.errors();
    agent_.SetGeneration(7);
    ASSERT_TRUE(agent_.CreateQueue(0, 1) && agent_.IsAlive());
  }

  UniqueFd Connect(const char* address = "127.0.0.1") const {
    UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<uint16_t>(port_));
    inet_pton(AF_INET, address, &at.sin_addr);
    const timeval patience{10, 0};
    setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(client.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) client.Reset();
    return client;
  }
  // The whole answer; "": none.
  std::string Exchange(const std::string& request) const {
    UniqueFd client = Connect();
    if (client.get() < 0 || send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
    std::string answer;
    char part[4096];
    for (ssize_t got; (got = recv(client.get(), part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<size_t>(got));
    return answer;
  }
  static std::string RequestFor(const std::string& line, const std::string& body = "") {
    return fmt::format("{} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
                       line, body.size(), body);
  }
  json Ask(const std::string& line, const std::string& body = "") const {
    const std::string answer = Exchange(RequestFor(line, body));
    const size_t begin = answer.find("\r\n\r\n");
    return begin == std::string::npos ? json() : json::parse(answer.substr(begin), nullptr, false);
  }
  // The status line of the answer to a request of another user.
  std::string AskAsStranger(const std::string& line) const {
    const std::string answer = AnswerToStranger(line);
    return answer.substr(0, answer.find('\r'));
  }
  std::string AnswerToStranger(const std::string& line) const {
    int ends[2];
    if (pipe(ends) != 0) return "";
    const pid_t child = fork();
    if (child == 0) {
      if (setuid(kStranger) != 0) _exit(1);
      const std::string answer = Exchange(RequestFor(line));
      _exit(write(ends[1], answer.data(), answer.size()) > 0 ? 0 : 1);
    }
    close(ends[1]);
    std::string answer;
    char part[4096];
    for (ssize_t got; (got = read(ends[0], part, sizeof part)) > 0;)
      answer.append(part, static_cast<size_t>(got));
    close(ends[0]);
    waitpid(child, nullptr, 0);
    return answer;
  }

  TempFolder folder_;
  const int port_ = FreePort();
  ServerProcess server_{
      XSERVER_PROGRAM, folder_.path() + "/s", {"--mode", "0666", "HPF", std::to_string(port_)}};
  TestAgent agent_{server_.socket()};
};

TEST_F(Http, a_line_of_1_2s_manual_starts_it_and_the_routes_answer) {
  const json queues = Ask("GET /xqueues");
  ASSERT_EQ(queues["xqueues"].size(), 1u) << queues;
  EXPECT_EQ(queues["xqueues"][0]["pid"], getpid());
  const uint64_t queue = queues["xqueues"][0]["handle"];
  EXPECT_EQ(Ask(fmt::format("GET /xqueue/{:x}", queue))["xqueue"]["handle"], queue);
  EXPECT_EQ(Ask("GET /policy"), kHpf);
  EXPECT_EQ(Ask("POST /policy?policy=4"), json({{"info", "success"}}));
  EXPECT_EQ(Ask("GET /policy"), json({{"policy", 4}, {"setting", "UP"}, {"k", 1}}));
  EXPECT_EQ(Ask("POST /hint", json({{"hint_type", 1}, {"handle", queue}, {"priority", 9}}).dump()),
            json({{"info", "success"}}));
  auto hints = agent_.ReceiveA<ipc::QueueHints>();
  ASSERT_TRUE(hints);
  EXPECT_EQ(hints->hints.priority, 9);
  EXPECT_EQ(Ask(fmt::format("POST /config/{:x}?level=2&threshold=4&batch_size=2", queue)),
            json({{"info", "success"}}));
  auto config = agent_.ReceiveA<ipc::QueueConfig>();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->threshold, 4);
}

TEST_F(Http, another_user_reads_and_changes_nothing_of_others) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  EXPECT_EQ(AskAsStranger("GET /xqueues"), "HTTP/1.1 200 OK");
  EXPECT_EQ(AskAsStranger("POST /policy?policy=4"), "HTTP/1.1 403 Forbidden");
  const uint64_t queue = Ask("GET /xqueues")["xqueues"][0]["handle"];
  EXPECT_EQ(AskAsStranger(fmt::format("POST /config/{:x}?level=1", queue)), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(Ask("GET /policy"), kHpf);
}

TEST_F(Http, one_user_cannot_have_all_connections) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  constexpr int kAll = 64;
  std::vector<UniqueFd> connections;
  for (int i = 0; i < kAll; ++i) connections.push_back(Connect());
  const auto closed = [&] {
    char byte;
    return std::count_if(connections.begin(), connections.end(), [&](const UniqueFd& connection) {
      return recv(connection.get(), &byte, 1, MSG_DONTWAIT) == 0;
    });
  };
  EXPECT_TRUE(Eventually([&] { return closed() == kAll - kAll / 4; })) << closed();
  EXPECT_EQ(AskAsStranger("GET /xqueues"), "HTTP/1.1 200 OK");
  EXPECT_EQ(Exchange(RequestFor("GET /policy")), "") << "of the first user, there are too many";
  connections.clear();
  EXPECT_TRUE(Eventually([&] { return Ask("GET /policy") == kHpf; }));
}

TEST_F(Http, metrics_show_each_user_its_own_queues) {
  const std::string answer = Exchange(RequestFor("GET /metrics"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
  EXPECT_NE(answer.find("Content-Type: application/openmetrics-text; version=1.0.0"), std::string::npos);
  EXPECT_NE(answer.find(fmt::format("pid=\"{}\"", getpid())), std::string::npos) << answer;
  EXPECT_NE(answer.find("xsched_server_resident_memory_bytes "), std::string::npos) << answer;
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  const std::string of_stranger = AnswerToStranger("GET /metrics");
  EXPECT_NE(of_stranger.find("xsched_server_clients 1"), std::string::npos) << of_stranger;
  EXPECT_EQ(of_stranger.find("uid="), std::string::npos) << of_stranger;
}

TEST_F(Http, who_asks_for_prometheus_own_format_gets_it) {
  const std::string answer =
      Exchange("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/plain\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("# EOF"), std::string::npos);
}

TEST_F(Http, a_web_page_cannot_read_metrics) {
  EXPECT_TRUE(Exchange("GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
                  .starts_with("HTTP/1.1 403"));
}

// At a Unix socket. "": there is no answer.
std::string AskAt(const std::string& path, const std::string& line) {
  UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) return "";
  const std::string request = line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char part[4096];
  for (ssize_t got; (got = recv(client.get(), part, sizeof part, 0)) > 0;)
    answer.append(part, static_cast<size_t>(got));
  return answer;
}

TEST(MetricsSocket, answers_metrics_and_nothing_else_also_where_a_former_server_left_its_file) {
  const TempFolder folder;
  const std::string path = folder.path() + "/metrics";
  for (int round = 0; round < 2; ++round) {
    ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s", {"--metrics", path});
    ASSERT_TRUE(server.ready()) << server.errors();
    EXPECT_TRUE(Eventually([&] { return AskAt(path, "GET /metrics").starts_with("HTTP/1.1 200 OK"); }));
    EXPECT_TRUE(AskAt(path, "GET /xqueues").starts_with("HTTP/1.1 404"));
    EXPECT_TRUE(AskAt(path, "POST /policy?policy=4").starts_with("HTTP/1.1 405"));
    server.Signal(SIGKILL);
    server.WaitForExit();
    EXPECT_TRUE(Eventually([&] { return AskAt(path, "GET /metrics").empty(); }));
  }
}

// Reads the metrics as another user, a member of this group, and looks for the first user's series. Returns
// its exit status.
int StatusOfReader(const std::string& path, gid_t group) {
  const pid_t child = fork();
  if (child == 0) {
    if (setgroups(1, &group) != 0 || setuid(kStranger) != 0) _exit(2);
    const std::string answer = AskAt(path, "GET /metrics");
    if (!answer.starts_with("HTTP/1.1 200 OK")) _exit(3);
    _exit(answer.find("uid=") != std::string::npos ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(MetricsSocket, the_metrics_group_sees_all_users_and_other_groups_do_not) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
  constexpr gid_t kDaemon = 1;
  const TempFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 0711), 0);
  const std::string path = folder.path() + "/metrics";
  ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s",
                       {"--mode", "0666", "--metrics", path, "--metrics-group", "daemon"});
  ASSERT_TRUE(server.ready()) << server.errors();
  TestAgent agent(server.socket());
  ASSERT_TRUE(agent.CreateQueue(0, 1) && agent.IsAlive());
  ASSERT_TRUE(Eventually([&] { return AskAt(path, "GET /metrics").find("uid=") != std::string::npos; }));
  EXPECT_EQ(StatusOfReader(path, kDaemon), 1);
  EXPECT_EQ(StatusOfReader(path, kDaemon + 1), 0);
}

TEST_F(Http, clients_that_send_slowly_or_nothing_make_nobody_wait) {
  std::vector<UniqueFd> slow;
  // One less than a user may have.
  for (int i = 0; i < 15; ++i) {
    slow.push_back(Connect());
    ASSERT_EQ(send(slow.back().get(), "GET /xq", 7, MSG_NOSIGNAL), 7);
  }
  const TimePoint begun = MonotonicClock::now();
  EXPECT_EQ(Ask("GET /policy"), kHpf);
  EXPECT_LT(MonotonicClock::now() - begun, std::chrono::seconds(2));
  EXPECT_TRUE(agent_.IsAlive());
}

TEST_F(Http, what_is_no_request_or_too_long_is_refused_and_the_next_is_answered) {
  EXPECT_FALSE(Exchange("\r\n\r\n\x01garbage\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_FALSE(
      Exchange("GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(Exchange(RequestFor("POST /hint", std::string(100'000, ' '))).starts_with("HTTP/1.1 413"));
  EXPECT_EQ(Ask("GET /policy"), kHpf);
}

TEST_F(Http, it_is_not_reached_from_other_machines) {
  // Any other address of this machine; 127.0.0.2 is one.
  EXPECT_LT(Connect("127.0.0.2").get(), 0);
}

TEST_F(Http, a_server_whose_port_is_taken_schedules_nevertheless_and_says_so) {
  TempFolder folder;
  ServerProcess second(XSERVER_PROGRAM, folder.path() + "/s", {"--http", std::to_string(port_)});
  ASSERT_TRUE(second.ready());
  EXPECT_NE(second.errors().find("cannot listen at 127.0.0.1"), std::string::npos) << second.errors();
}

TEST_F(Http, it_ends_with_the_server) {
  ASSERT_EQ(Ask("GET /policy"), kHpf);
  server_.Signal(SIGKILL);
  server_.WaitForExit();
  EXPECT_TRUE(Eventually([&] { return Connect().get() < 0; }));
}

// Also those that have ended, and are not reaped.
std::vector<pid_t> ChildrenOf(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  return {std::istream_iterator<pid_t>(file), {}};
}

TEST_F(Http, one_that_ends_is_reaped_and_the_log_says_how_to_start_it_again) {
  const std::vector<pid_t> children = ChildrenOf(server_.pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return ChildrenOf(server_.pid()).empty(); }));
  const std::string by_hand = fmt::format("xserver-http --socket {} {}", server_.socket().text, port_);
  const std::string said = "xserver-http has ended by signal 9; scheduling goes on.";
  EXPECT_TRUE(Eventually([&] {
    const std::string errors = server_.errors();
    return errors.find(said) != std::string::npos && errors.find(by_hand + "\n") != std::string::npos;
  })) << server_.errors();
  EXPECT_TRUE(agent_.IsAlive());
}

TEST_F(Http, it_is_reaped_also_if_whoever_started_the_server_ignores_such_signals) {
  const TempFolder folder;
  signal(SIGCHLD, SIG_IGN);
  const ServerProcess server(XSERVER_PROGRAM, folder.path() + "/s",
                             {"--metrics", folder.path() + "/metrics"});
  signal(SIGCHLD, SIG_DFL);
  const std::vector<pid_t> children = ChildrenOf(server.pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return server.errors().find("by signal 9") != std::string::npos; }))
      << server.errors();
}

TEST_F(Http, the_log_says_how_to_start_it_again_as_a_shell_reads_it) {
  const std::string folder = folder_.path() + "/a user's";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const ServerProcess server(XSERVER_PROGRAM, folder + "/s", {"--metrics", folder + "/metrics"});
  const std::vector<pid_t> children = ChildrenOf(server.pid());
  ASSERT_EQ(children.size(), 1u);
  kill(children.front(), SIGKILL);
  const std::string quoted = folder_.path() + R"(/a user'\''s)";
  const std::string by_hand =
      fmt::format("xserver-http --socket '{0}/s' --metrics-only '{0}/metrics'\n", quoted);
  EXPECT_TRUE(Eventually([&] { return server.errors().find(by_hand) != std::string::npos; }))
      << server.errors();
}

// Of xserver-http alone, which is ended if it goes on. Its output is appended to `output`.
int StatusOfHttp(const std::string& arguments, std::string& output) {
  const std::string command = fmt::format("timeout 10 {}-http {} 2>&1", XSERVER_PROGRAM, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  char part[4096];
  while (fgets(part, sizeof part, pipe) != nullptr) output += part;
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(HttpProgram, refuses_a_descriptor_that_is_no_socket_to_listen_at) {
  for (const char* fd : {"99", "0"}) {
    std::string output;
    EXPECT_EQ(StatusOfHttp(fmt::format("--listen-fd {} --socket /s < /dev/null", fd), output), 1);
    EXPECT_NE(output.find(fmt::format("{} is no socket that listens", fd)), std::string::npos) << output;
  }
}

TEST(HttpProgram, refuses_an_empty_value_of_an_option) {
  for (const char* option : {"--socket", "--admin-group"}) {
    std::string output;
    EXPECT_EQ(StatusOfHttp(fmt::format("{} ''", option), output), 2);
    EXPECT_NE(output.find(fmt::format("{}: it must not be empty", option)), std::string::npos) << output;
  }
}

TEST(HttpProgram, takes_an_empty_metrics_group_for_none) {
  std::string output;
  EXPECT_EQ(StatusOfHttp("--metrics-group '' --listen-fd 0 --socket /s < /dev/null", output), 1);
  EXPECT_NE(output.find("0 is no socket that listens"), std::string::npos) << output;
}

TEST(HttpProgram, refuses_a_path_that_is_no_socket_s) {
  const TempFolder folder;
  std::string output;
  EXPECT_EQ(StatusOfHttp(fmt::format("{}/http --socket {}", folder.path(), std::string(200, 'a')), output),
            1);
  EXPECT_NE(output.find("1 to 107 characters"), std::string::npos) << output;
}

}  // namespace
}  // namespace xsched::server::testing
