// xsched run: starts a server if none is there, sets the environment, becomes the program, or stays beside it
// to report what became of it.
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>

#include "base/byte_size.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/system_calls.h"
#include "cli/become.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/hint_options.h"
#include "cli/launch_environment.h"
#include "cli/library_path.h"
#include "cli/locations.h"
#include "cli/platform.h"
#include "cli/policy_text.h"
#include "cli/programs/detached.h"
#include "cli/run/reported_run.h"
#include "cli/server_session.h"
#include "cli/shims.h"
#include "cli/validators.h"
#include "cli/warn.h"
#include "ipc/job.h"
#include "ipc/memory_account.h"
#include "server/empty_values.h"

namespace xsched::cli {
namespace {

struct RunOptions {
  LaunchOptions launch;
  bool no_server = false;
  bool shared_context = false;
  std::string report;  // kToStderr, or a file; "": none
  std::vector<std::string> program;
};

constexpr const char* kToStderr = "true";  // what the option is without a value
constexpr int kServerStartMs = 3000;
// A program becomes a client with its first command. Before that, it may load its model for many minutes.
constexpr const char* kServerIdleSeconds = "3600";

// If the program can only run natively, prepares for that and prints why.
void CheckProgram(RunOptions& options, const FoundShims& shims) {
  for (const std::string& folder : ReadLibraryPath().others) Warn(ProblemOfOther(folder));
  WarnOfOthers(shims);
  const Target target = TargetOf(options.program[0]);
  const std::string why = WhyNotReached(target.reach);
  if (why.empty()) return;
  options.launch.preload = !PreloadingKills(target.reach);
  Warn(fmt::format("{} {}: it runs unscheduled{}", target.path, why,
                   options.launch.preload ? "" : ", and so does what it starts"));
}

struct Pipe {
  UniqueFd reader, writer;
};

// Reading it does not wait.
Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno(errno, "no pipe");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The first of what a server has written before it ended, as a part of a line of ours.
std::string SaidBy(const Pipe& errors) {
  constexpr std::string_view kItsName = "xserver: ";
  char text[240];  // what fits into an Error
  const ssize_t size = read(errors.reader.get(), text, sizeof text);
  std::string said(text, size > 0 ? static_cast<size_t>(size) : 0);
  if (said.starts_with(kItsName)) said.erase(0, kItsName.size());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  for (char& c : said) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return said;
}

// Starts a server for this user, which ends when it has no client for a while. It may write errors as long as
// we are here; later ones are dropped.
Result<> StartUserServer() {
  std::optional<std::string> server = FindProgram("xserver");
  if (!server) server = FindInPath("xserver");
  if (!server) return Error::Make("xserver is not installed");
  Result<Pipe> ready = MakePipe();
  if (!ready) return ready.error();
  Result<Pipe> errors = MakePipe();
  if (!errors) return errors.error();
  const std::string fd = std::to_string(kKeptFd);
  const std::string program = std::filesystem::absolute(*server);
  // A socket with a relative path is in our folder, which the server keeps then.
  const std::string chosen = CurrentVariable("XSCHED_SOCKET");
  const std::string folder = chosen.empty() || chosen[0] == '/' ? "" : std::filesystem::current_path();
  const bool started = RunDetached(
      [&] {
        LeaveStarter();
        if (!folder.empty() && chdir(folder.c_str()) != 0) return;
        execl(program.c_str(), "xserver", "--user", "--idle-exit", kServerIdleSeconds, "--log-level", "error",
              "--ready-fd", fd.c_str(), nullptr);
      },
      ready->writer.get(), errors->writer.get());
  if (!started) return Error::Make("no process can be started");
  ready->writer.Reset();
  errors->writer.Reset();
  pollfd poll_ready{ready->reader.get(), POLLIN, 0};
  if (poll(&poll_ready, 1, kServerStartMs) != 1)
    return Error::Make("it does not start within %d ms", kServerStartMs);
  char byte;
  if (read(ready->reader.get(), &byte, 1) == 1) return {};
  const std::string said = SaidBy(*errors);
  return Error::Make("%s", said.empty() ? "it ends without a reason" : said.c_str());
}

void PrepareServer(const RunOptions& options) {
  if (options.launch.scheduler != "GLB") return;
  bool answers = ServerAnswers();
  if (!answers && !options.no_server) {
    if (Result<> safe = ipc::CheckUserServerFolder(); !safe && CurrentVariable("XSCHED_SOCKET").empty()) {
      Warn(fmt::format("no server is started, and the program runs unscheduled: {}", safe.error().text()));
      return;
    }
    // Another run may have started a server at the same moment. Then ours has ended, and the other answers.
    if (Result<> started = StartUserServer(); !started && !ServerAnswers()) {
      Warn(fmt::format("the program runs unscheduled until a server is there; cannot start one: {}",
                       started.error().text()));
      return;
    }
  }
  if (options.launch.policy.empty()) return;
  try {
    ServerSession server;
    server.SetPolicy(PolicyRequest(server, server::SettingOrThrow(options.launch.policy)));
  } catch (const CommandError& error) {
    Warn(fmt::format("policy not set: {}", error.what()));
  }
}

// The folder of this user's server, which no other user can write. It may be missing.
std::filesystem::path UserFolder() {
  if (Result<> safe = ipc::CheckUserServerFolder(); !safe)
    throw CommandError(kExitFailed, safe.error().text());
  return std::filesystem::path(ipc::UserServerSocket().text).parent_path();
}

// If that fails, the program has a context of its own.
void ShareContexts() {
  bool possible = false;
  for (const Platform* platform : Platforms()) {
    if (platform->share_context == nullptr || !platform->is_here()) continue;
    possible = true;
    try {
      SetEnvironment(platform->share_context(UserFolder() / (std::string("shared-context-") + platform->id)));
    } catch (const CommandError& error) {
      Warn(fmt::format("the program has a {} context of its own: {}", platform->name, error.what()));
    }
  }
  if (!possible)
    Warn("the program has a context of its own: no platform here has contexts that can be shared");
}

// The account in which the program's processes count their memory. "": each has the limit for itself.
std::string NewMemoryAccount(uint64_t limit) {
  try {
    Result<ipc::MemoryAccountPath> path = ipc::CreateMemoryAccount(UserFolder().c_str(), limit);
    if (path) return path->text;
    Warn(fmt::format("{}: each process of the program has the limit for itself", path.error().text()));
  } catch (const CommandError& error) {
    Warn(fmt::format("{}: each process of the program has the limit for itself", error.what()));
  }
  return "";
}

// As people write it: "20GiB", or "1000000 bytes" if it is no whole number of a larger unit.
std::string SizeText(uint64_t bytes) {
  constexpr const char* kUnits[] = {" bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes % 1024 == 0 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  return fmt::format("{}{}", bytes, kUnits[unit]);
}

// Gives the program an account. A limit under which this runs already stays: what is started inside has no
// more than that.
void LimitMemory(LaunchOptions& launch) {
  if (!launch.memory) return;
  const std::optional<uint64_t> outer = ReadByteSize(CurrentVariable("XSCHED_MEMORY").c_str());
  if (!outer || *outer > *launch.memory) {
    launch.memory_account = NewMemoryAccount(*launch.memory);
    return;
  }
  if (*outer < *launch.memory)
    Warn(fmt::format("--memory {} has no effect: this program is already under a limit of {}",
                     SizeText(*launch.memory), SizeText(*outer)));
  launch.memory.reset();
}

// A job that nobody has used. "": the system gives no random numbers. Then each process of the program is
// scheduled by itself.
std::string NewJob() {
  uint64_t id = 0;
  if (GetRandom(&id, sizeof id, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof id)) return "";
  return fmt::format("{:016x}", id);
}

void Run(RunOptions& options) {
  CheckHintOptions(options.launch);
  if (!options.report.empty() && options.launch.scheduler != "GLB")
    throw CommandError(kExitUsage, "--report is about the server's scheduling: it needs --scheduler GLB");
  PrepareServer(options);
  const FoundShims shims = FindShims(options.launch.route);
  CheckProgram(options, shims);
  if (options.shared_context) ShareContexts();
  const std::string new_job = NewJob();
  const ipc::JobName launched = ipc::LaunchedJob();
  options.launch.job = *launched.text != '\0' ? launched.text : new_job;
  LimitMemory(options.launch);
  SetEnvironment(LaunchEnvironment(options.launch, shims.found, CurrentVariable));
  if (options.report.empty()) Become(options.program);
  RunReported(options.program, {.file = options.report == kToStderr ? "" : options.report,
                                .job = CurrentVariable("XSCHED_JOB"),
                                .job_is_older = CurrentVariable("XSCHED_JOB") != new_job});
}

}  // namespace

void AddRun(CLI::App& app) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run =
      app.add_subcommand("run", "run a program under XSched: xsched run [options] -- program [arguments]");
  LaunchOptions& launch = options->launch;
  AddHintOptions(*run, launch);
  run->add_option_function<std::string>(
         "--memory",
         [options](const std::string& size) { options->launch.memory = ReadByteSize(size.c_str()); },
         "of each device at most so much, for all processes of the program together: 20GiB. KiB, MiB, GiB "
         "and TiB (or K, M, G, T) are powers of 1024; KB, MB, GB and TB powers of 1000; a number alone is "
         "bytes")
      ->check(ByteSize());
  run->add_option(
         "--policy", launch.policy,
         "set the server's policy first; with LCL, the process's own: a policy, or a chain of them, as "
         "HPF/CFS:process/KEDF")
      ->check(PolicyValidator());
  run->add_option("--scheduler", launch.scheduler,
                  "GLB: the server; LCL: the process's own; APP: the program itself")
      ->check(CLI::IsMember({"GLB", "LCL", "APP"}));
  run->add_option("--route", launch.route,
                  fmt::format("layer: through the {} loader; preload: for programs that bypass the loader",
                              server::Listed(NamesOfPlatforms(/*with_layers=*/true), "or")))
      ->check(CLI::IsMember({"layer", "preload"}));
  run->add_option("--gang", launch.gang,
                  "programs of one user that are run with the same name are one job, as the ranks of a "
                  "distributed program are: they have their turns at the same time, on all devices")
      ->check(server::NotEmpty());
  run->add_flag("--no-server", options->no_server, "do not start a server");
  run->add_flag(
      "--shared-context", options->shared_context,
      "one context for all programs that are run so, where a service of their platform provides it");
  run->add_flag(
      "--report", options->report,
      "say on stderr, when the program has ended, how long its requests took, and why and because of "
      "whom it waited; --report=FILE: into a file, as JSON");
  run->add_option("program", options->program, "the program and its arguments")->required();
  run->positionals_at_end();
  run->callback([options] { Run(*options); });
}

}  // namespace xsched::cli
