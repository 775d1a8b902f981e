#include "cli/calibrate/program_machine.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cli/json_text.h"
#include "cli/locations.h"
#include "cli/server_session.h"

namespace xsched::cli {
namespace {

constexpr std::chrono::milliseconds kPoll{10};
// The most time that a driver needs to start and to compile a kernel, or a server to start.
constexpr Duration kPatience = std::chrono::seconds(30);
// From the file that names the beginning to the beginning.
constexpr Duration kUntilStart = std::chrono::milliseconds(50);

}  // namespace

ProgramMachine::ProgramMachine(const Platform& platform)
    : platform_(platform), self_(std::filesystem::read_symlink("/proc/self/exe").string()) {
  StartServer();
  const Program program =
      Start({.platform = platform_.id, .speed = {}, .queues = {}, .length = {}, .start = ""},
            /*scheduled=*/false);
  facts_ = FactsFrom(Answers(program, 2, kPatience)[1]);
}

void ProgramMachine::StartServer() {
  const std::optional<std::string> program = FindProgram("xserver");
  if (!program) throw CommandError(kExitFailed, "xserver is not installed beside this program");
  const std::string socket = place_.File("socket");
  // For the programs that are started, and for this process as a tool of that server.
  setenv("XSCHED_SOCKET", socket.c_str(), 1);
  const std::string output = place_.File("server");
  server_ = std::make_unique<BackgroundProgram>(
      std::vector<std::string>{*program, "--user", "--socket", socket, "--policy", "LAX"}, output);
  for (const TimePoint begin = MonotonicClock::now(); !ServerAnswers();) {
    if (server_->Status() || MonotonicClock::now() - begin > kPatience) {
      std::string last;
      std::ifstream file(output);
      for (std::string line; std::getline(file, line);) last = line;
      throw CommandError(kExitNoServer, "the server for the measurement did not start: " + last);
    }
    signals_.Sleep(kPoll);
  }
}

ProgramMachine::Program ProgramMachine::Start(const WorkJob& job, bool scheduled) {
  std::vector<std::string> words;
  if (scheduled) words = {self_, "run", "--no-server", "--"};
  words.insert(words.end(), {self_, "calibrate", "--work", JsonText(JsonOf(job), -1)});
  Program program{.process = nullptr, .output = place_.File(fmt::format("program{}", files_++))};
  program.process = std::make_unique<BackgroundProgram>(words, program.output);
  return program;
}

std::vector<std::string> ProgramMachine::Answers(const Program& program, size_t count,
                                                 Duration patience) const {
  const TimePoint begin = MonotonicClock::now();
  for (;;) {
    const bool ended = program.process->Status().has_value();
    std::vector<std::string> answers;
    std::string message = "it says nothing";
    std::ifstream file(program.output);
    // A line without an end is not complete yet.
    for (std::string line; std::getline(file, line) && !file.eof();) {
      if (line.starts_with(kAnswerMark)) {
        answers.push_back(line.substr(kAnswerMark.size()));
      } else {
        message = line;
      }
    }
    const bool failed = ended && program.process->Status() != 0;
    if (answers.size() >= count && !failed) return answers;
    if (ended || MonotonicClock::now() - begin > patience) {
      throw CommandError(kExitFailed, fmt::format("a program on the {} device {}: {}", platform_.name,
                                                  ended ? "failed" : "does not answer", message));
    }
    signals_.Sleep(kPoll);
  }
}

// Returns the queues' level. The priorities are those of queues without any slack, which only the policy LAX
// knows: by priorities of the usual kind, drivers would let one queue's commands run before the other's as
// well.
int ProgramMachine::SetPriorities(const Program& program, const std::vector<QueueWork>& queues) const {
  ServerSession server;
  std::vector<ipc::QueueInfo> listed = server.List();
  std::erase_if(listed, [&](const ipc::QueueInfo& queue) { return queue.pid != program.process->pid(); });
  if (listed.size() < queues.size()) {
    throw CommandError(
        kExitFailed,
        fmt::format("programs on the {} device are not scheduled: xsched doctor says why", platform_.name));
  }
  // The program's own queues are the last that it made: in the order of their numbers.
  std::sort(listed.begin(), listed.end(),
            [](const auto& one, const auto& other) { return one.queue_id < other.queue_id; });
  listed.erase(listed.begin(), listed.end() - static_cast<std::ptrdiff_t>(queues.size()));
  for (size_t i = 0; i < queues.size(); ++i) {
    ipc::SetHints request{};
    request.queue_id = listed[i].queue_id;
    request.mask = ipc::kHintLaxity;
    request.hints.laxity_us = 0;
    request.hints.lax_priority = request.hints.critical_priority = queues[i].priority;
    server.SetHints(request);
  }
  return static_cast<int>(listed.back().level);
}

Observation ProgramMachine::Run(const Experiment& experiment) {
  const std::string start = place_.File(fmt::format("start{}", files_++));
  std::vector<Program> programs;
  for (const std::vector<QueueWork>& queues : experiment.programs) {
    programs.push_back(Start({.platform = platform_.id,
                              .speed = facts_.speed,
                              .queues = queues,
                              .length = experiment.length,
                              .start = start},
                             experiment.scheduled));
  }
  for (const Program& program : programs) Answers(program, 1, kPatience);
  Observation seen;
  for (size_t i = 0; experiment.scheduled && i < programs.size(); ++i)
    seen.level = SetPriorities(programs[i], experiment.programs[i]);
  const std::string unfinished = start + ".new";
  std::ofstream(unfinished) << (MonotonicClock::now() + kUntilStart).time_since_epoch().count() << "\n";
  std::filesystem::rename(unfinished, start);
  for (const Program& program : programs) {
    for (std::vector<Span>& spans : SpansFrom(Answers(program, 2, experiment.length + kPatience)[1]))
      seen.spans.push_back(std::move(spans));
  }
  return seen;
}

}  // namespace xsched::cli
