// xsched from the outside: what it says, how it ends, and what a program that it runs is given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/exit_codes.h"
#include "cli/testing/tool.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::cli::testing {
namespace {

using nlohmann::json;
using server::testing::TempFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// No server, no configuration, and nothing of the user's who runs the tests.
class Command : public ::testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& arguments, Environment more = {}) {
    more.merge(environment());
    return RunXsched(arguments, more);
  }
  Environment environment() const {
    return {{"XSCHED_SOCKET", socket()}, {"XDG_CONFIG_HOME", folder_.path()}};
  }
  std::string socket() const { return folder_.path() + "/xserver.sock"; }
  std::string config_path() const { return folder_.path() + "/xsched/xserver.json"; }

  // A shell script.
  std::string Script(const std::string& text) {
    std::string path = folder_.path() + "/script";
    std::ofstream(path) << "#!/bin/sh\n" << text << "\n";
    chmod(path.c_str(), 0755);
    return path;
  }
  static void ExpectOneLine(const std::string& errors) {
    EXPECT_THAT(errors, StartsWith("xsched: "));
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  }

  TempFolder folder_;
};

const std::vector<std::vector<std::string>> kCommands = {{},
                                                         {"run"},
                                                         {"top"},
                                                         {"list"},
                                                         {"hint"},
                                                         {"policy"},
                                                         {"policy", "show"},
                                                         {"config"},
                                                         {"policy", "set"},
                                                         {"policy", "list"},
                                                         {"doctor"},
                                                         {"config", "get"},
                                                         {"config", "set"},
                                                         {"cdi"},
                                                         {"cdi", "generate"},
                                                         {"demo"},
                                                         {"record"},
                                                         {"simulate"},
                                                         {"calibrate"}};

TEST_F(Command, each_explains_itself_on_stdout) {
  for (std::vector<std::string> command : kCommands) {
    command.push_back("--help");
    Outcome outcome = Run(command);
    EXPECT_EQ(outcome.status, kExitOk) << command.front();
    EXPECT_THAT(outcome.out, HasSubstr("Usage: ")) << command.front();
    EXPECT_THAT(outcome.errors, IsEmpty());
  }
}

// In one line, however the help was wrapped.
std::string Unwrapped(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

TEST_F(Command, help_says_what_values_may_be_and_mean) {
  const std::string last_priority = "-256: only while no other queue of the device has work";
  const std::vector<std::pair<std::vector<std::string>, std::string>> helps = {
      {{"run"}, last_priority},
      {{"hint"}, last_priority},
      {{"run"}, "at most so many µs of each period (at least 100)"},
      {{"run"}, "a number alone is bytes"},
      {{"run"}, "a policy, or a chain of them, as HPF/CFS:process/KEDF"},
      {{"hint"}, "deadline, from the arrival of work"},
      {{"hint"}, "by how much work may be delayed"},
      {{"config", "get"}, "socket, mode, group"},
      {{"config", "set"}, "metrics_group and tenants"},
  };
  for (const auto& [command, part] : helps) {
    std::vector<std::string> asked = command;
    asked.emplace_back("--help");
    EXPECT_THAT(Unwrapped(Run(asked).out), HasSubstr(part)) << command.front();
  }
  EXPECT_THAT(Unwrapped(Run({"config"}).out), HasSubstr(last_priority));
}

TEST_F(Command, help_and_version_tell_exit_codes_and_version) {
  EXPECT_THAT(Run({"--help"}).out, AllOf(HasSubstr("3 no server"), HasSubstr("4 not permitted")));
  EXPECT_EQ(Run({"--version"}).out, "xsched " XSCHED_VERSION "\n");
}

TEST_F(Command, wrong_usage_is_one_line_that_says_which_help_to_read) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{}, "xsched --help"},
      {{"fly"}, "there is no command fly"},
      {{"run"}, "xsched run --help"},
      {{"run", "--priority", "256", "--", "true"}, "xsched run --help"},
      {{"run", "--priority", "-257", "--", "true"}, "--priority"},
      {{"run", "--utilization", "101", "--", "true"}, "--utilization"},
      {{"run", "--level", "4", "--", "true"}, "--level"},
      {{"run", "--threshold", "0", "--", "true"}, "above 0"},
      {{"run", "--deadline-us", "1.5", "--", "true"}, "--deadline-us"},
      {{"run", "--deadline-us", "31556952000001", "--", "true"}, "--deadline-us"},
      {{"run", "--laxity-us", "9223372036854775807", "--", "true"}, "--laxity-us"},
      {{"run", "--guarantee-us", "5000", "--", "true"}, "it has no period"},
      {{"run", "--limit-us", "5000", "--", "true"}, "it has no period"},
      {{"run", "--guarantee-us", "5000", "--limit-us", "4000", "--period-us", "9000", "--", "true"},
       "the limit is less than the guarantee"},
      {{"run", "--burst-us", "5000", "--period-us", "9000", "--", "true"}, "neither a guarantee nor a limit"},
      {{"hint", "--pid", "1", "--guarantee-us", "5000"}, "it has no period (see xsched hint --help)"},
      {{"hint", "--pid", "1", "--deadline-us", "31556952000001"}, "--deadline-us"},
      {{"run", "--threshold", "4", "--batch-size", "5", "--", "true"}, "--batch-size"},
      {{"run", "--policy", "FIFO", "--", "true"}, "FIFO"},
      {{"run", "--scheduler", "XYZ", "--", "true"}, "--scheduler"},
      {{"run", "--route", "sea", "--", "true"}, "--route"},
      {{"simulate", "priority", "--seconds", "nan"}, "nan is not a number from 0.001"},
      {{"simulate", "priority", "--warm-up", "nan"}, "--warm-up"},
      {{"record", "--seconds", "nan"}, "--seconds"},
      {{"calibrate", "--seconds", "nan"}, "--seconds"},
      {{"top", "--delay", "nan"}, "--delay"},
      {{"simulate", "priority", "--target", "", "--maximize", "train"}, "--target"},
      {{"list", "--pid", "x"}, "xsched list --help"},
      {{"list", "surplus"}, "surplus"},
      {{"record", "--seconds", "0"}, "--seconds"},
      {{"record", "--pid", "0"}, "above 0"},
      {{"hint", "--priority", "1"}, "xsched hint --help"},
      {{"hint", "--queue", "1", "--pid", "2", "--priority", "1"}, "xsched hint --help"},
      {{"hint", "--queue", "1"}, "nothing to set"},
      {{"policy"}, "xsched policy --help"},
      {{"policy", "set"}, "xsched policy set --help"},
      {{"policy", "set", "HPF", "--timeslice-us", "99"}, "--timeslice-us"},
      {{"top", "--delay", "0"}, "xsched top --help"},
      {{"config", "get", "color"}, "there is no setting color (there are socket, mode, group, "},
      {{"cdi"}, "xsched cdi --help"},
      {{"cdi", "generate", "--kind", "size"}, "xsched cdi generate --help"},
      {{"cdi", "generate", "--kind", "share", "--class", "a --priority 1"}, "--class goes with --kind class"},
      {{"cdi", "generate", "--class", "a/b --priority 1"}, "can name no device"},
      {{"cdi", "generate", "--class", "a --priority 256"}, "--class a: --priority"},
      {{"cdi", "generate", "--class", "a"}, "it needs a hint"},
      {{"demo", "--seconds", "0"}, "xsched demo --help"},
      {{"explain", "--recording", ""}, "--recording"},
      {{"tenants", "--check", ""}, "--check"},
      {{"run", "--gang", "", "--", "true"}, "--gang"},
  };
  for (const auto& [arguments, part] : wrong) {
    Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitUsage) << part;
    EXPECT_THAT(outcome.errors, HasSubstr(part));
    EXPECT_THAT(outcome.out, IsEmpty());
    ExpectOneLine(outcome.errors);
  }
}

TEST_F(Command, whose_output_cannot_be_written_fails) {
  for (const std::string command : {"--version", "--help", "policy list", "config", "config --json",
                                    "simulate priority --seconds 1 --policy HPF --json"}) {
    const Outcome outcome = RunShell("\"$0\" " + command + " > /dev/full", environment());
    EXPECT_EQ(outcome.status, kExitFailed) << command;
    ExpectOneLine(outcome.errors);
  }
  EXPECT_EQ(RunShell("\"$0\" policy list > /dev/full", environment()).errors,
            "xsched: standard output cannot be written: No space left on device\n");
}

TEST_F(Command, finds_out_at_once_that_its_file_cannot_be_written) {
  const std::string path = folder_.path() + "/none/made";
  const std::vector<std::vector<std::string>> writing = {{"calibrate", "--seconds", "0.2", "-o", path},
                                                         {"simulate", "no-such-load", "--html", path}};
  for (const std::vector<std::string>& arguments : writing) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitFailed) << arguments.front();
    EXPECT_EQ(outcome.errors, "xsched: " + path + ": cannot be written: No such file or directory\n");
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST_F(Command, that_fails_leaves_no_empty_file) {
  const std::string path = folder_.path() + "/page";
  EXPECT_EQ(Run({"simulate", "no-such-load", "--html", path}).status, kExitFailed);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Command, without_a_server_is_one_line_that_names_the_socket) {
  const std::vector<std::vector<std::string>> asking = {{"list"},
                                                        {"list", "--json"},
                                                        {"hint", "--queue", "1", "--priority", "1"},
                                                        {"policy", "show"},
                                                        {"policy", "set", "UP"},
                                                        {"top"},
                                                        {"top", "--batch", "--count", "1"}};
  for (const auto& arguments : asking) {
    Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitNoServer) << arguments[0];
    EXPECT_THAT(outcome.errors, HasSubstr(socket()));
    ExpectOneLine(outcome.errors);
  }
}

// ---- run ----

TEST_F(Command, run_ends_as_the_program_does) {
  EXPECT_EQ(Run({"run", "--no-server", "--", "/bin/sh", "-c", "exit 7"}).status, 7);
  EXPECT_EQ(Run({"run", "--no-server", "--", "/bin/sh", "-c", "kill -TERM $$"}).status, -SIGTERM);
  Outcome missing = Run({"run", "--no-server", "--", folder_.path() + "/missing"});
  EXPECT_EQ(missing.status, kExitNoProgram);
  ExpectOneLine(missing.errors);
  EXPECT_EQ(Run({"run", "--no-server", "--", folder_.path()}).status, kExitCannotRun);
}

TEST_F(Command, run_gives_the_program_its_arguments_untouched) {
  std::string script = Script(R"(for word in "$@"; do echo "<$word>"; done)");
  std::string expected = "<--help>\n<-p>\n<>\n<a b>\n<-->\n<*>\n";
  EXPECT_EQ(Run({"run", "--no-server", "--", script, "--help", "-p", "", "a b", "--", "*"}).out, expected);
  // The first word that is no option begins the program.
  EXPECT_EQ(Run({"run", "--no-server", script, "--priority", "3"}).out, "<--priority>\n<3>\n");
}

TEST_F(Command, run_gives_the_program_the_environment_that_was_asked_for) {
  std::string script = Script("env | grep -E '^(XSCHED_[AP]|XSCHED_SCH|OPENCL_LAYERS)' | sort");
  Outcome outcome = Run({"run",
                         "--no-server",
                         "--priority",
                         "5",
                         "--utilization",
                         "40",
                         "--level",
                         "1",
                         "--threshold",
                         "8",
                         "--batch-size",
                         "2",
                         "--deadline-us",
                         "1000",
                         "--laxity-us",
                         "200",
                         "--weight",
                         "300",
                         "--guarantee-us",
                         "2000",
                         "--period-us",
                         "10000",
                         "--latency-target-us",
                         "20000",
                         "--floor",
                         "15",
                         "--",
                         script},
                        {{"OPENCL_LAYERS", "/other.so"}, {"XSCHED_POLICY", "UP"}});
  EXPECT_EQ(outcome.out, "OPENCL_LAYERS=" XSCHED_SHIM
                         ":/other.so\n"
                         "XSCHED_AUTO_XQUEUE=ON\n"
                         "XSCHED_AUTO_XQUEUE_BATCH_SIZE=2\n"
                         "XSCHED_AUTO_XQUEUE_DEADLINE=1000\n"
                         "XSCHED_AUTO_XQUEUE_FLOOR=15\n"
                         "XSCHED_AUTO_XQUEUE_GUARANTEE=2000\n"
                         "XSCHED_AUTO_XQUEUE_LATENCY_TARGET=20000\n"
                         "XSCHED_AUTO_XQUEUE_LAXITY=200\n"
                         "XSCHED_AUTO_XQUEUE_LEVEL=1\n"
                         "XSCHED_AUTO_XQUEUE_PERIOD=10000\n"
                         "XSCHED_AUTO_XQUEUE_PRIORITY=5\n"
                         "XSCHED_AUTO_XQUEUE_THRESHOLD=8\n"
                         "XSCHED_AUTO_XQUEUE_UTILIZATION=40\n"
                         "XSCHED_AUTO_XQUEUE_WEIGHT=300\n"
                         "XSCHED_SCHEDULER=GLB\n")
      << outcome.errors;
}

TEST_F(Command, run_makes_each_program_a_job_of_its_own_and_what_that_starts_a_part_of_it) {
  std::string script = Script("echo $XSCHED_JOB");
  std::string first = Run({"run", "--no-server", "--", script}).out;
  std::string second = Run({"run", "--no-server", "--", script}).out;
  EXPECT_EQ(first.size(), 17u) << first;
  EXPECT_NE(first, second);
  EXPECT_EQ(Run({"run", "--no-server", "--", script}, {{"XSCHED_JOB", "training"}}).out, "training\n");
}

TEST_F(Command, run_leaves_a_rank_in_the_job_of_its_launcher_unless_a_gang_is_named) {
  std::string script = Script("echo $XSCHED_JOB");
  const Environment rank = {
      {"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}};
  EXPECT_THAT(Run({"run", "--no-server", "--", script}, rank).out, StartsWith("torch:localhost:29500@net:["));
  EXPECT_EQ(Run({"run", "--no-server", "--gang", "mine", "--", script}, rank).out, "mine\n");
}

TEST_F(Command, run_with_a_limit_of_memory_gives_the_program_an_account_of_its_own) {
  std::string script = Script("echo $XSCHED_MEMORY; ls $XSCHED_MEMORY_ACCOUNT");
  std::string first = Run({"run", "--no-server", "--memory", "2GiB", "--", script}).out;
  std::string second = Run({"run", "--no-server", "--memory", "2GiB", "--", script}).out;
  EXPECT_THAT(first, ::testing::MatchesRegex("2147483648\n/.*/memory-[0-9a-f]+\n"));
  EXPECT_NE(first, second);
  Outcome wrong = Run({"run", "--no-server", "--memory", "much", "--", script});
  EXPECT_EQ(wrong.status, kExitUsage);
  EXPECT_THAT(wrong.errors, HasSubstr("much is no size such as 20GiB or 512MiB"));
}

TEST_F(Command, run_with_a_local_scheduler_sets_its_policy_and_starts_no_server) {
  std::string script = Script("echo $XSCHED_SCHEDULER $XSCHED_POLICY");
  EXPECT_EQ(Run({"run", "--scheduler", "LCL", "--policy", "up", "--", script}).out, "LCL up\n");
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(Command, run_starts_a_server_that_outlives_the_program) {
  Outcome outcome = Run({"run", "--policy", "UP", "--", XSCHED_PROGRAM, "policy", "show"});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_THAT(outcome.out, StartsWith("policy UP"));
  EXPECT_THAT(outcome.errors, IsEmpty());
  ipc::SocketPath path{};
  socket().copy(path.text, sizeof path.text - 1);
  server::testing::TestTool tool(path);
  std::optional<ipc::Status> status = tool.Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(kill(status->pid, SIGTERM), 0);
}

// What starts the server is, as this test for a while, in a folder, on one processor, and under a limit.
class Starter {
 public:
  explicit Starter(const std::string& folder) : folder_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
    EXPECT_EQ(sched_getaffinity(0, sizeof processors_, &processors_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &processors_)) CPU_SET(i, &one);
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(getrlimit(RLIMIT_CPU, &limit_), 0);
    const rlimit lower{600, limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_CPU, &lower), 0);
  }
  ~Starter() {
    setrlimit(RLIMIT_CPU, &limit_);
    sched_setaffinity(0, sizeof processors_, &processors_);
    std::filesystem::current_path(folder_);
  }
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

 private:
  std::filesystem::path folder_;
  cpu_set_t processors_{};
  rlimit limit_{};
};

TEST_F(Command, a_server_that_run_starts_keeps_no_folder_busy_and_has_no_limits_of_what_started_it) {
  {
    const Starter starter(folder_.path());
    ASSERT_EQ(Run({"run", "--", "/bin/true"}).status, kExitOk);
  }
  ipc::SocketPath path{};
  socket().copy(path.text, sizeof path.text - 1);
  const std::optional<ipc::Status> status = server::testing::TestTool(path).Status();
  ASSERT_TRUE(status);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/" + std::to_string(status->pid) + "/cwd"), "/");
  cpu_set_t ours, its;
  ASSERT_EQ(sched_getaffinity(0, sizeof ours, &ours), 0);
  ASSERT_EQ(sched_getaffinity(status->pid, sizeof its, &its), 0);
  EXPECT_GE(CPU_COUNT(&its), CPU_COUNT(&ours));
  rlimit limit{};
  ASSERT_EQ(prlimit(status->pid, RLIMIT_CPU, nullptr, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
  EXPECT_EQ(kill(status->pid, SIGTERM), 0);
}

TEST_F(Command, run_without_a_server_that_could_start_warns_once_and_runs_the_program) {
  // Too long for a socket.
  Outcome outcome = Run({"run", "--", "/bin/echo", "done"}, {{"XSCHED_SOCKET", std::string(200, 's')}});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_THAT(outcome.errors, HasSubstr("path must have 1 to 107 characters")) << "what the server said";
  ExpectOneLine(outcome.errors);
}

TEST_F(Command, a_mistake_in_the_server_s_configuration_is_said_by_run_doctor_and_config) {
  std::filesystem::create_directory(folder_.path() + "/xsched");
  for (const auto& [text, problem] : std::vector<std::pair<std::string, std::string>>{
           {R"({"timeslice_us": "2000"})", ": timeslice_us must be a whole number, not \"2000\""},
           {R"({"policy": )", ": it is not JSON: "}}) {
    std::ofstream(config_path()) << text;
    const std::string said = config_path() + problem;
    Outcome outcome = Run({"run", "--", "/bin/echo", "done"});
    EXPECT_EQ(outcome.out, "done\n");
    EXPECT_THAT(outcome.errors,
                HasSubstr("the program runs unscheduled until a server is there; cannot start one: " + said));
    ExpectOneLine(outcome.errors);

    outcome = Run({"doctor", "--json"});
    EXPECT_EQ(outcome.status, kExitFailed);
    EXPECT_EQ(json::parse(outcome.out)["scheduled"], false);
    EXPECT_THAT(Run({"doctor"}).out, AllOf(HasSubstr(said), HasSubstr("xsched run cannot start one")));

    const json problems = json::parse(Run({"config", "--json"}).out)["problems"];
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_THAT(problems[0].get<std::string>(), HasSubstr(said));
    EXPECT_THAT(Run({"config"}).out, HasSubstr("problem: no server starts with this file: " + said));
  }
}

TEST_F(Command, run_starts_no_server_where_another_user_could_take_its_place_and_says_why) {
  std::filesystem::create_directory(folder_.path() + "/xsched");
  ASSERT_EQ(chmod((folder_.path() + "/xsched").c_str(), 0777), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);
  Outcome outcome = RunXsched({"run", "--", "/bin/echo", "done"},
                              {{"XDG_RUNTIME_DIR", folder_.path()}, {"XDG_CONFIG_HOME", folder_.path()}});
  EXPECT_EQ(outcome.status, kExitOk);
  EXPECT_EQ(outcome.out, "done\n");
  EXPECT_THAT(outcome.errors, HasSubstr("others may write to the folder " + folder_.path() + "/xsched"));
  ExpectOneLine(outcome.errors);
}

// ---- config ----

TEST_F(Command, config_says_in_JSON_what_is_wrong_even_if_it_is_not_text) {
  Outcome outcome =
      Run({"config", "--json"},
          {{"XSCHED_AUTO_XQUEUE_LEVEL", "9"}, {"XSCHED_TYPO", "1"}, {"OPENCL_LAYERS", "\xff\xfe"}});
  EXPECT_EQ(outcome.status, kExitOk);
  json shown = json::parse(outcome.out);
  EXPECT_EQ(shown["socket"], socket());
  EXPECT_EQ(shown["server"]["running"], false);
  EXPECT_EQ(shown["environment"]["XSCHED_AUTO_XQUEUE_LEVEL"]["valid"], false);
  EXPECT_EQ(shown["environment"]["XSCHED_POLICY"]["value"], nullptr);
  EXPECT_EQ(shown["problems"].size(), 2u);
}

TEST_F(Command, config_sets_what_a_server_takes_and_gets_it_back) {
  EXPECT_EQ(Run({"config", "set", "policy", "UP"}).status, kExitOk);
  EXPECT_EQ(Run({"config", "set", "timeslice_us", "2000"}).status, kExitOk);
  EXPECT_EQ(Run({"config", "get", "policy"}).out, "UP\n");
  EXPECT_EQ(Run({"config", "get", "timeslice_us"}).out, "2000\n");
  EXPECT_EQ(Run({"config", "get", "group"}).status, kExitFailed);
  std::ifstream file(config_path());
  EXPECT_EQ(json::parse(file), json({{"policy", "UP"}, {"timeslice_us", 2000}}));
}

TEST_F(Command, config_leaves_the_file_alone_when_a_server_would_not_take_it) {
  ASSERT_EQ(Run({"config", "set", "policy", "UP"}).status, kExitOk);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"mode", "999"},
                                                        {"policy", "FIFO"},
                                                        {"timeslice_us", "1"},
                                                        {"grace_us", "soon"},
                                                        {"group", "no-such"},
                                                        {"admin_group", "no-such"},
                                                        {"metrics_group", "no-such"},
                                                        {"metrics_per_queue", "yes"},
                                                        {"history", "300000"},
                                                        {"tenants", "/no/such"},
                                                        {"tenants", "relative"},
                                                        {"socket", "relative"},
                                                        {"color", "red"}}) {
    Outcome outcome = Run({"config", "set", key, value});
    EXPECT_EQ(outcome.status, kExitUsage) << key;
    ExpectOneLine(outcome.errors);
  }
  std::ifstream file(config_path());
  EXPECT_EQ(json::parse(file), json({{"policy", "UP"}}));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path() + "/xsched"), {}), 1);
}

TEST_F(Command, config_does_not_write_over_a_file_that_is_not_JSON) {
  std::filesystem::create_directory(folder_.path() + "/xsched");
  std::ofstream(config_path()) << "policy = UP\n";
  EXPECT_EQ(Run({"config", "set", "policy", "HPF"}).status, kExitFailed);
  std::ifstream file(config_path());
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "policy = UP");
}

// It has settings that would be lost.
TEST_F(Command, config_does_not_write_over_a_file_that_it_may_not_read) {
  const std::string text = R"({"policy":"CFS","k":2})";
  std::filesystem::create_directory(folder_.path() + "/xsched");
  std::ofstream(config_path()) << text;
  // Another user may replace the file.
  chmod(folder_.path().c_str(), 0777);
  chmod((folder_.path() + "/xsched").c_str(), 0777);
  chmod(config_path().c_str(), 0);
  constexpr uid_t kAnother = 54321;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"config", "set", "k", "3"}, {"config", "get", "k"}}) {
    const Outcome outcome = RunXsched(arguments, environment(), geteuid() == 0 ? kAnother : 0);
    EXPECT_EQ(outcome.status, kExitNotPermitted);
    EXPECT_THAT(outcome.errors, HasSubstr("cannot be read: Permission denied"));
    ExpectOneLine(outcome.errors);
  }
  chmod(config_path().c_str(), 0600);
  std::string left;
  std::getline(std::ifstream(config_path()), left);
  EXPECT_EQ(left, text);
}

TEST_F(Command, config_set_keeps_a_link_to_the_file_and_who_may_read_it) {
  const std::string real = folder_.path() + "/real.json";
  std::ofstream(real) << R"({"policy":"HPF"})";
  constexpr gid_t kOtherGroup = 12345;
  const bool may_give = chown(real.c_str(), static_cast<uid_t>(-1), kOtherGroup) == 0;
  chmod(real.c_str(), 0640);
  std::filesystem::create_directory(folder_.path() + "/xsched");
  std::filesystem::create_symlink(real, config_path());
  EXPECT_EQ(Run({"config", "set", "k", "2"}).status, kExitOk);
  EXPECT_TRUE(std::filesystem::is_symlink(config_path()));
  std::ifstream file(real);
  EXPECT_EQ(json::parse(file), json({{"policy", "HPF"}, {"k", 2}}));
  struct stat status {};
  ASSERT_EQ(stat(real.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  if (may_give) {
    EXPECT_EQ(status.st_gid, kOtherGroup) << "it is the server's";
  }
}

TEST_F(Command, config_set_does_not_follow_a_link_of_another_user) {
  constexpr uid_t kOtherUser = 12345;
  const std::string real = folder_.path() + "/real.json";
  std::ofstream(real) << R"({"policy":"HPF"})";
  std::filesystem::create_directory(folder_.path() + "/xsched");
  std::filesystem::create_symlink(real, config_path());
  if (lchown(config_path().c_str(), kOtherUser, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "only root may give a link to another user";
  EXPECT_EQ(Run({"config", "set", "k", "2"}).status, kExitNotPermitted);
  std::ifstream file(real);
  EXPECT_EQ(json::parse(file), json({{"policy", "HPF"}}));
}

// ---- doctor, top, demo ----

TEST_F(Command, top_of_another_machine_is_asked_for_by_ssh) {
  std::ofstream(folder_.path() + "/ssh")
      << "#!/bin/sh\nfor word in \"$@\"; do echo \"<$word>\"; done\nexit 7\n";
  chmod((folder_.path() + "/ssh").c_str(), 0755);
  const Environment path{{"PATH", folder_.path() + ":/usr/bin:/bin"}};
  Outcome outcome = Run({"top", "--batch", "--count", "2", "--delay", "0.5", "--host", "me@node1"}, path);
  EXPECT_EQ(outcome.status, 7) << "what ssh says";
  EXPECT_THAT(Run({"top", "--help"}).out,
              HasSubstr("Exit status with --host: that of xsched there; 255: ssh failed"));
  EXPECT_EQ(outcome.out, "<-->\n<me@node1>\n<xsched>\n<top>\n<--delay=0.5>\n<--count=2>\n<--batch>\n");
  outcome = Run({"top", "-f", "20", "--host", "node1"}, path);
  EXPECT_EQ(outcome.out, "<-->\n<node1>\n<xsched>\n<top>\n<--frequency=20>\n") << "it takes no such delay";
  EXPECT_EQ(Run({"top", "--host", "-oProxyCommand=ls"}, path).status, kExitUsage) << "no option of ssh";
  const Environment nowhere{{"PATH", folder_.path() + "/none"}};
  Outcome without = Run({"top", "--host", "node1"}, nowhere);
  EXPECT_NE(without.status, kExitOk);
  ExpectOneLine(without.errors);
}

TEST_F(Command, cdi_generate_names_what_is_here_and_all_that_it_needs) {
  if (!std::filesystem::exists(XSCHED_SHIM)) GTEST_SKIP() << "this build has no shim for OpenCL";
  const std::string path = folder_.path() + "/cdi/class.json";
  const Outcome outcome = Run({"cdi", "generate", "--class", "serve --priority 5", "--output", path});
  ASSERT_EQ(outcome.status, kExitOk) << outcome.errors;
  EXPECT_THAT(outcome.out, IsEmpty());

  const json specification = json::parse(std::ifstream(path));
  std::vector<std::string> names;
  for (const json& device : specification["devices"]) names.push_back(device["name"]);
  EXPECT_THAT(names, ::testing::ElementsAre("urgent", "normal", "batch", "serve"));
  std::vector<std::string> places;
  for (const json& mount : specification["containerEdits"]["mounts"]) {
    EXPECT_TRUE(std::filesystem::exists(mount["hostPath"].get<std::string>())) << mount;
    places.push_back(mount["containerPath"]);
  }
  EXPECT_THAT(places, ::testing::IsSupersetOf({"/run/xsched", "/opt/xsched/lib/libshimopencl.so",
                                               "/opt/xsched/lib/libhalopencl.so.2",
                                               "/opt/xsched/lib/libpreempt.so.2"}));
  EXPECT_EQ(specification["containerEdits"]["mounts"][0]["hostPath"], folder_.path());
}

// Engines that ordinary users run read it.
TEST_F(Command, cdi_generate_makes_a_folder_that_everybody_can_enter_whatever_the_umask_is) {
  if (!std::filesystem::exists(XSCHED_SHIM)) GTEST_SKIP() << "this build has no shim for OpenCL";
  const std::string folder = folder_.path() + "/made/cdi";
  const mode_t former = umask(077);
  const Outcome outcome = Run({"cdi", "generate", "--output", folder + "/class.json"});
  umask(former);
  ASSERT_EQ(outcome.status, kExitOk) << outcome.errors;
  for (const std::string& made : {folder_.path() + "/made", folder}) {
    struct stat status {};
    ASSERT_EQ(stat(made.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0755u) << made;
  }
}

// Containers would see all that is in it.
TEST_F(Command, cdi_generate_says_what_is_wrong_with_the_hints_of_a_class) {
  const Outcome outcome = Run({"cdi", "generate", "--class", "x --help"});
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_THAT(outcome.errors, HasSubstr("--class x: The following argument was not expected: --help"));
  ExpectOneLine(outcome.errors);
}

TEST_F(Command, cdi_generate_mounts_no_folder_that_everybody_may_write_to) {
  if (!std::filesystem::exists(XSCHED_SHIM)) GTEST_SKIP() << "this build has no shim for OpenCL";
  const Outcome outcome = Run({"cdi", "generate"}, {{"XSCHED_SOCKET", "/tmp/xserver.sock"}});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("everybody may write to /tmp"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST_F(Command, doctor_ends_with_0_if_and_only_if_a_program_would_be_scheduled) {
  Outcome outcome = Run({"doctor", "--json", "--", "/bin/sh"});
  json report = json::parse(outcome.out);
  EXPECT_EQ(outcome.status, report["scheduled"].get<bool>() ? kExitOk : kExitFailed) << outcome.out;
  EXPECT_EQ(report.contains("obstacle"), !report["scheduled"].get<bool>());
  for (const json& finding : report["findings"]) {
    EXPECT_THAT(finding["kind"].get<std::string>(), ::testing::AnyOf("ok", "note", "problem"));
    EXPECT_THAT(finding["text"].get<std::string>(), Not(IsEmpty()));
  }
}

TEST_F(Command, doctor_says_that_ld_library_path_schedules_nothing) {
  const std::string ours = std::filesystem::path(XSCHED_SHIM).parent_path();
  EXPECT_THAT(Run({"doctor"}, {{"LD_LIBRARY_PATH", ours}}).out,
              HasSubstr("LD_LIBRARY_PATH has XSched's libraries. This alone schedules nothing"));
  EXPECT_THAT(Run({"doctor"}).out, Not(HasSubstr("LD_LIBRARY_PATH")));
}

TEST_F(Command, run_and_doctor_warn_of_another_xsched_in_ld_library_path) {
  std::ofstream(folder_.path() + "/libpreempt.so") << "another version";
  const Environment environment{{"LD_LIBRARY_PATH", folder_.path()}};
  const std::string warning =
      "LD_LIBRARY_PATH has " + folder_.path() + ", where another XSched is: programs may load";
  EXPECT_THAT(Run({"doctor"}, environment).out, HasSubstr(warning));
  const Outcome run = Run({"run", "--scheduler", "LCL", "--", Script("echo runs")}, environment);
  EXPECT_EQ(run.out, "runs\n");
  EXPECT_THAT(run.errors, HasSubstr("xsched: " + warning));
}

TEST_F(Command, doctor_says_why_a_program_would_not_be_scheduled) {
  Outcome outcome = Run({"doctor", "--json", "--", folder_.path() + "/missing"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_EQ(json::parse(outcome.out)["scheduled"], false);
  ExpectOneLine(outcome.errors);
}

TEST_F(Command, record_without_a_server_fails_and_writes_no_file) {
  const std::string path = folder_.path() + "/recording.xrec";
  const Outcome outcome = Run({"record", "--output", path});
  EXPECT_EQ(outcome.status, kExitNoServer);
  ExpectOneLine(outcome.errors);
  EXPECT_FALSE(std::filesystem::exists(path));
}

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A recording with one program; `more` is a further line.
std::string Recording(const std::string& more = "") {
  return R"({"xsched_record":1,"recorded":{"started":"2026-11-23T02:00:00Z","version":"2.0.0","policy":"HPF","anonymous":false}}
{"t":0,"device":{"id":0,"platform":"cuda","name":"GPU","level":3}}
{"t":0,"process":{"id":1,"name":"serve","pid":7,"user":"a"}}
{"t":0,"queue":{"id":1,"number":36,"process":1,"device":0,"level":3}}
)" + more +
         R"({"t":9,"end":{"why":"time"}}
)";
}

TEST_F(Command, trace_reads_all_of_a_recording_before_it_writes) {
  const std::string path = folder_.path() + "/both";
  Write(path, Recording());
  const Outcome same = Run({"trace", path, "-o", path});
  EXPECT_EQ(same.status, kExitOk) << same.errors;
  const std::string good = Read(path);
  EXPECT_THAT(good, HasSubstr("queue 36 on GPU"));
  const std::string broken = folder_.path() + "/broken";
  Write(broken, Recording("nonsense\n"));
  EXPECT_EQ(Run({"trace", broken, "--output", path}).status, kExitFailed);
  EXPECT_EQ(Read(path), good);
}

TEST_F(Command, explain_says_that_a_recording_was_cut_off) {
  const std::string path = folder_.path() + "/recording";
  const std::string whole = Recording();
  Write(path, whole);
  EXPECT_THAT(Run({"explain", "--recording", path}).errors, IsEmpty());
  Write(path, whole.substr(0, whole.rfind('{', whole.rfind('{') - 1)));
  const Outcome cut = Run({"explain", "--recording", path});
  EXPECT_EQ(cut.status, kExitOk);
  EXPECT_EQ(cut.errors, "xsched: the recording was cut off: it has no end\n");
}

TEST_F(Command, blank_lines_of_a_recording_are_nothing) {
  const std::string path = folder_.path() + "/recording";
  Write(path, Recording("\n") + "\n");
  EXPECT_EQ(Run({"trace", path, "-o", folder_.path() + "/trace"}).errors,
            "0 requests: " + folder_.path() + "/trace\n");
  EXPECT_THAT(Run({"explain", "--recording", path}).errors, IsEmpty());
}

TEST_F(Command, whose_disk_gets_full_says_so) {
  const std::string recording = folder_.path() + "/recording";
  Write(recording, Recording());
  const std::string problem = "cannot be written: No space left on device\n";
  EXPECT_EQ(Run({"trace", recording, "-o", "/dev/full"}).errors, "xsched: /dev/full: " + problem);
  EXPECT_EQ(RunShell("\"$0\" trace " + recording + " -o - > /dev/full", environment()).errors,
            "xsched: standard output " + problem);
  EXPECT_EQ(Run({"simulate", "priority", "--seconds", "1", "--policy", "HPF", "--html", "/dev/full"}).errors,
            "xsched: /dev/full: " + problem);
}

TEST_F(Command, whose_file_is_named_like_standard_output_says_which_cannot_be_written) {
  const std::string in_folder = "cd " + folder_.path() + " && ln -sf /dev/full ./- && \"$0\" ";
  EXPECT_EQ(RunShell(in_folder + "simulate priority --seconds 1 --policy HPF --html -", environment()).errors,
            "xsched: -: cannot be written: No space left on device\n");
}

TEST_F(Command, what_cannot_be_read_is_no_empty_recording) {
  const std::string good = folder_.path() + "/good";
  std::string recording = Recording();
  Write(good, recording.insert(recording.find("\"version\""), "\"started_unix_ns\":1,"));
  const std::string output = folder_.path() + "/trace";
  const std::vector<std::vector<std::string>> reading = {
      {"trace", folder_.path(), "-o", output},
      {"trace", good, "-o", output, "--torch", folder_.path()},
      {"explain", "--recording", folder_.path()}};
  for (const auto& arguments : reading) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitFailed);
    EXPECT_EQ(outcome.errors, "xsched: " + folder_.path() + ": cannot be read: Is a directory\n");
  }
}

TEST_F(Command, a_file_with_an_endless_line_is_no_recording) {
  const std::string path = folder_.path() + "/long";
  Write(path, std::string(size_t{2} << 20, ' '));
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"trace", path, "-o", folder_.path() + "/trace"},
                                             {"explain", "--recording", path},
                                             {"simulate", path}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.status, kExitFailed);
    EXPECT_EQ(outcome.errors, "xsched: " + path + ":1: longer than a line of a recording\n");
  }
}

TEST_F(Command, without_standard_error_does_what_it_should) {
  const std::string path = folder_.path() + "/recording";
  Write(path, Recording());
  const std::string command = "\"$0\" trace " + path + " -o " + folder_.path();
  ASSERT_EQ(RunShell(command + "/with", environment()).status, kExitOk);
  EXPECT_EQ(RunShell(command + "/without 2>&-", environment()).status, kExitOk);
  EXPECT_EQ(Read(folder_.path() + "/without"), Read(folder_.path() + "/with"));
}

TEST_F(Command, trace_says_if_there_is_nothing_to_show) {
  const std::string path = folder_.path() + "/empty";
  const std::string whole = Recording();
  Write(path, whole.substr(0, whole.find('\n') + 1) + whole.substr(whole.rfind('{', whole.rfind('{') - 1)));
  const Outcome outcome = Run({"trace", path, "-o", folder_.path() + "/trace"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("nothing to show"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/trace"));
}

TEST_F(Command, trace_shows_profiles_of_torch_that_are_from_the_recording_s_time) {
  std::string recording = Recording();
  recording.insert(recording.find("\"version\""), "\"started_unix_ns\":1790000000000000000,");
  Write(folder_.path() + "/recording", recording);
  const auto profile = [&](const char* name, const char* text) {
    Write(folder_.path() + name, text);
    return folder_.path() + name;
  };
  const std::string good =
      profile("/good", R"([{"ph":"X","name":"aten::mm","ts":1790000000000000,"dur":1}])");
  const std::string late =
      profile("/late", R"([{"ph":"X","name":"aten::mm","ts":1790000000000001,"dur":1}])");
  const std::string compressed = profile("/compressed.gz", "\x1f\x8b");
  const std::string path = folder_.path() + "/trace";
  const auto run = [&](const std::vector<std::string>& profiles) {
    std::vector<std::string> arguments = {"trace", "-o", path};
    for (const std::string& one : profiles) arguments.insert(arguments.end(), {"--torch", one});
    arguments.push_back(folder_.path() + "/recording");
    return Run(arguments);
  };
  const Outcome late_one = run({good, late});
  EXPECT_EQ(late_one.status, kExitFailed);
  EXPECT_THAT(late_one.errors,
              HasSubstr("/late: none of its slices is from the recording's time (1 are not)"));
  EXPECT_THAT(run({compressed}).errors, HasSubstr("it is compressed: unpack it first (gunzip "));
  EXPECT_EQ(run({folder_.path() + "/missing"}).status, kExitFailed);
  EXPECT_FALSE(std::filesystem::exists(path));
  const Outcome both = run({good, good});
  EXPECT_EQ(both.status, kExitOk) << both.errors;
  EXPECT_THAT(both.errors, HasSubstr("/good: 1 slices\n"));
  EXPECT_THAT(Read(path), HasSubstr("aten::mm"));
}

TEST_F(Command, trace_takes_seconds_with_and_without_their_unit) {
  for (const char* last : {"30", "30s", "0.5s"})
    EXPECT_EQ(Run({"trace", "--last", last, "-o", folder_.path() + "/x"}).status, kExitNoServer) << last;
  for (const char* last : {"30m", "nan", "0", "s", ""})
    EXPECT_EQ(Run({"trace", "--last", last, "-o", folder_.path() + "/x"}).status, kExitUsage) << last;
}

TEST_F(Command, run_inside_a_limit_of_memory_cannot_lift_it) {
  const std::vector<std::string> shown = {"--", Script("echo $XSCHED_MEMORY $XSCHED_MEMORY_ACCOUNT")};
  const auto with = [&](const char* size) {
    std::vector<std::string> arguments = {"run", "--no-server", "--memory", size};
    arguments.insert(arguments.end(), shown.begin(), shown.end());
    return Run(arguments, {{"XSCHED_MEMORY", "1000000"}, {"XSCHED_MEMORY_ACCOUNT", "/outer"}});
  };
  const Outcome greater = with("2GiB");
  EXPECT_EQ(greater.out, "1000000 /outer\n");
  EXPECT_THAT(greater.errors, HasSubstr("xsched: --memory 2GiB has no effect: this program is already under "
                                        "a limit of 1000000 bytes\n"));
  const Outcome lesser = with("512KiB");
  EXPECT_THAT(lesser.out, StartsWith("524288 "));
  EXPECT_THAT(lesser.out, Not(HasSubstr("/outer")));
}

TEST_F(Command, run_names_a_limit_of_memory_as_people_write_it) {
  const Outcome outcome = Run({"run", "--no-server", "--memory", "40GiB", "--", Script("true")},
                              {{"XSCHED_MEMORY", "21474836480"}});
  EXPECT_THAT(outcome.errors, HasSubstr("--memory 40GiB has no effect"));
  EXPECT_THAT(outcome.errors, HasSubstr("already under a limit of 20GiB"));
}

TEST_F(Command, simulate_fails_with_the_nearest_if_nothing_meets_the_target) {
  const std::vector<std::string> search = {"simulate", "priority",   "--seconds",  "2",
                                           "--policy", "native,HPF", "--maximize", "train"};
  auto with = [&](const std::string& target) {
    std::vector<std::string> arguments = search;
    arguments.insert(arguments.end(), {"--target", target});
    return Run(arguments);
  };
  const Outcome met = with("serve p99 < 5 ms");
  EXPECT_EQ(met.status, kExitOk) << met.errors;
  EXPECT_THAT(met.out, HasSubstr("best of"));
  const Outcome missed = with("serve p99 < 1 ms");
  EXPECT_EQ(missed.status, kExitFailed);
  ExpectOneLine(missed.errors);
  EXPECT_THAT(missed.errors, HasSubstr("the nearest is HPF"));
}

TEST_F(Command, simulate_shows_what_meets_the_target_or_else_the_nearest_alone) {
  const auto with = [&](const char* target) {
    return json::parse(Run({"simulate", "priority", "--seconds", "2", "--policy", "native,HPF", "--maximize",
                            "train", "--json", "--target", target})
                           .out);
  };
  const auto p99 = [](const json& outcome) {
    for (const json& queue : outcome["queues"]) {
      if (queue["queue"] == "serve") return queue["p99_ms"].get<double>();
    }
    return 1e9;
  };
  const json met = with("serve p99 < 5 ms");
  EXPECT_FALSE(met.empty());
  for (const json& outcome : met) EXPECT_LT(p99(outcome), 5) << outcome;
  const json nearest = with("serve p99 < 1 ms");
  ASSERT_EQ(nearest.size(), 1u);
  EXPECT_GT(p99(nearest[0]), 1);
}

TEST_F(Command, simulate_says_if_no_task_ends_under_any_policy) {
  const Outcome outcome = Run({"simulate", "priority", "--seconds", "2", "--policy", "native,HPF",
                               "--maximize", "serve", "--target", "train p99 < 1 ms"});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("train ends no task under any of them"));
}

TEST_F(Command, simulate_takes_no_folder_for_a_load) {
  const Outcome outcome = Run({"simulate", folder_.path()});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("this is a folder"));
}

TEST_F(Command, demo_says_what_to_install) {
  Outcome outcome = Run({"demo"}, {{"PATH", folder_.path()}});
  EXPECT_EQ(outcome.status, kExitFailed);
  EXPECT_THAT(outcome.errors, HasSubstr("apt-get install hashcat"));
  ExpectOneLine(outcome.errors);
}

}  // namespace
}  // namespace xsched::cli::testing
