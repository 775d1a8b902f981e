// xsched record: what the programs put on their queues, and when, into a file that xsched simulate reads.
#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/programs/stop_signals.h"
#include "cli/record/recording_writer.h"
#include "cli/server_session.h"
#include "cli/validators.h"
#include "server/version.h"

namespace xsched::cli {
namespace {

// How long the server may take for the rest of a recording.
constexpr Duration kRestTimeout = std::chrono::seconds(5);
// What was recorded is in the file so soon, whatever becomes of this program.
constexpr Duration kFlushEvery = std::chrono::seconds(1);

struct RecordOptions {
  std::optional<double> seconds;
  std::string output = "recording.xrec";
  bool anonymous = false;
  std::vector<int32_t> pids;
};

std::string Now() {
  const time_t now = time(nullptr);
  tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

class Recorder {
 public:
  Recorder(const RecordOptions& options, std::ostream& out)
      : options_(options), out_(out), writer_(out, options.anonymous) {
    server_.Require(kMinorOfChains, "to record");
    policy_ = server_.Status().setting;
  }

  void Run();
  const RecordingWriter& writer() const { return writer_; }
  Duration length() const { return length_; }
  // Empty: it ended as it should. Otherwise what happened to the server.
  const std::string& problem() const { return problem_; }

 private:
  void Begin();
  void Wait(TimePoint now);
  void Stop(const char* why, TimePoint now);
  // False: the recording has ended.
  bool TakeMessages();
  bool TakeReply(const ipc::Reply& reply);
  void End(const char* problem);
  void Flush(TimePoint now);

  const RecordOptions& options_;
  std::ostream& out_;
  ServerSession server_;
  StopSignals signals_;
  RecordingWriter writer_;
  std::string policy_;
  TimePoint began_{};
  TimePoint stop_at_ = kNever;
  TimePoint flush_at_{};
  const char* why_ = nullptr;  // it was asked to stop
  size_t replies_due_ = 0;
  Duration length_{};
  std::string problem_;
};

void Recorder::Begin() {
  writer_.Begin({Now(), kVersion, policy_});
  began_ = MonotonicClock::now();
  flush_at_ = began_;
  if (options_.seconds) {
    stop_at_ =
        began_ + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*options_.seconds));
  }
  for (int32_t pid : options_.pids) server_.BeginRecording(pid);
  if (options_.pids.empty()) server_.BeginRecording(0);
  replies_due_ = std::max<size_t>(options_.pids.size(), 1);
}

void Recorder::Run() {
  Begin();
  for (;;) {
    const TimePoint now = MonotonicClock::now();
    Flush(now);
    if (now >= stop_at_) {
      if (why_ != nullptr) return End("the server did not send the rest");
      Stop("time", now);
    }
    Wait(MonotonicClock::now());
    if (signals_.Take()) {
      if (why_ != nullptr) return End("stopped before the server had sent the rest");
      Stop("interrupted", MonotonicClock::now());
    }
    if (!TakeMessages()) return;
  }
}

// Waits for a message, a signal, or the next thing to do by time.
void Recorder::Wait(TimePoint now) {
  const Duration left = std::max(std::min(stop_at_, flush_at_) - now, Duration::zero());
  pollfd ready[] = {{server_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
  poll(ready, 2, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

void Recorder::Stop(const char* why, TimePoint now) {
  why_ = why;
  length_ = now - began_;
  stop_at_ = now + kRestTimeout;
  server_.StopRecording();
}

bool Recorder::TakeMessages() {
  for (;;) {
    ipc::Packet packet;
    switch (server_.Take(packet)) {
      case ipc::Received::kNothing:
        return true;
      case ipc::Received::kMessage:
        if (packet.header().type != ipc::MessageType::kReply) {
          writer_.Write(packet);
        } else if (!TakeReply(packet.As<ipc::Reply>())) {
          End("");
          return false;
        }
        continue;
      default:
        End("the server ended the connection");
        return false;
    }
  }
}

bool Recorder::TakeReply(const ipc::Reply& reply) {
  if (replies_due_ == 0) return why_ == nullptr;
  ServerSession::Check(reply);
  if (--replies_due_ == 0 && reply.count == 0) fmt::print(stderr, "xsched: there is no queue yet\n");
  return true;
}

void Recorder::End(const char* problem) {
  problem_ = problem;
  if (why_ == nullptr) length_ = MonotonicClock::now() - began_;
  writer_.End(length_, problem_.empty() ? why_ : problem_);
}

void Recorder::Flush(TimePoint now) {
  if (now < flush_at_) return;
  flush_at_ = now + kFlushEvery;
  if (!out_.flush()) throw CommandError(kExitFailed, fmt::format("{}: cannot be written", options_.output));
}

void Record(const RecordOptions& options) {
  const bool to_stdout = options.output == "-";
  std::ofstream file;
  std::ostream& out = to_stdout ? std::cout : file;
  Recorder recorder(options, out);
  if (!to_stdout) file.open(options.output, std::ios::trunc);
  if (!out) throw CommandError(kExitFailed, fmt::format("{}: cannot be written", options.output));
  recorder.Run();
  if (!out.flush()) throw CommandError(kExitFailed, fmt::format("{}: cannot be written", options.output));
  const RecordingWriter& writer = recorder.writer();
  fmt::print(stderr, "{} queues, {} bursts in {:.1f} s: {}\n", writer.queues(), writer.bursts(),
             std::chrono::duration<double>(recorder.length()).count(), options.output);
  if (writer.lost() != 0) {
    fmt::print(stderr, "xsched: {} records were lost, because this command did not read them in time\n",
               writer.lost());
  }
  if (!recorder.problem().empty()) {
    throw CommandError(kExitNoServer, fmt::format("{}; {} has what was recorded until then",
                                                  recorder.problem(), options.output));
  }
}

}  // namespace

void AddRecord(CLI::App& app) {
  auto options = std::make_shared<RecordOptions>();
  CLI::App* record = app.add_subcommand(
      "record",
      "record what programs put on their queues, for simulate (your queues; all for administrators)");
  record->add_option("--seconds", options->seconds, "how long; until Ctrl-C by default")
      ->check(CLI::Range(0.001, 1e6));
  record->add_option("--output", options->output, "the file to write, or - (recording.xrec)")
      ->type_name("FILE");
  record->add_flag("--anonymous", options->anonymous,
                   "numbers in place of names of programs, users and pids");
  record->add_option("--pid", options->pids, "only of these processes")->check(AboveZero());
  record->callback([options] { Record(*options); });
}

}  // namespace xsched::cli
