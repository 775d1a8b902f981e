#include "cli/record/recorder.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/output_file.h"
#include "server/version.h"

namespace xsched::cli {
namespace {

// How long the server may take for the rest of a recording.
constexpr Duration kRestTimeout = std::chrono::seconds(5);
// What was recorded is in the file so soon, whatever becomes of this program.
constexpr Duration kFlushEvery = std::chrono::seconds(1);

// The time since 1970.
Duration UnixTime() { return std::chrono::system_clock::now().time_since_epoch(); }

std::string TimeText(Duration unix_time) {
  const time_t then = std::chrono::floor<std::chrono::seconds>(unix_time).count();
  tm utc{};
  gmtime_r(&then, &utc);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

void WarnOfGap(Duration covered, Duration asked) {
  // The server counts whole milliseconds.
  if (covered + std::chrono::milliseconds(1) >= asked) return;
  fmt::print(stderr, "xsched: the server remembers the last {:.1f} s\n", InSeconds(covered));
}

Recorder::Recorder(const RecordingRequest& request, std::ostream& out)
    : request_(request), out_(out), writer_(out, request.anonymous) {
  server_.Require(request.last ? kMinorOfHistory : kMinorOfChains, "to record");
  policy_ = server_.Status().setting;
}

void Recorder::Begin() {
  // The server says at the end of its answer how much it remembers. Times count from the beginning of what is
  // asked for, so only that much is recorded.
  if (request_.last) covered_ = std::min(server_.GetLast(*request_.last, [](const auto&) {}), *request_.last);
  // The recording begins when the server gets the request, which it does at once.
  const Duration started = UnixTime() - covered_;
  writer_.Begin({TimeText(started), started.count(), kVersion, policy_});
  began_ = MonotonicClock::now();
  flush_at_ = began_;
  if (request_.last) {
    server_.AskForLast(covered_);
    why_ = "time";
    length_ = covered_;
    stop_at_ = began_ + kRestTimeout;
    return;
  }
  if (request_.length) stop_at_ = began_ + *request_.length;
  for (int32_t pid : request_.pids) server_.BeginRecording(pid);
  if (request_.pids.empty()) server_.BeginRecording(0);
  replies_due_ = std::max<size_t>(request_.pids.size(), 1);
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
  if (request_.last) {
    ServerSession::Check(reply);
    return false;
  }
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
  FlushOutput(out_);
}

Duration WriteLast(Duration time, std::ostream& out) {
  const RecordingRequest request{.last = time, .output = {}};
  Recorder recorder(request, out);
  recorder.Run();
  WarnOfGap(recorder.covered(), time);
  if (!recorder.problem().empty()) throw CommandError(kExitNoServer, recorder.problem());
  return recorder.covered();
}

}  // namespace xsched::cli
