#include "cli/run/job_recording.h"

#include <poll.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

constexpr Duration kAskEvery = std::chrono::seconds(1);
// The program waits for it.
constexpr Duration kPatienceAtFirst = std::chrono::seconds(2);
// While the program runs, its signals are waiting to be passed on.
constexpr Duration kShortPatience = std::chrono::milliseconds(300);

}  // namespace

void JobRecording::Begin() noexcept try { Ask(kPatienceAtFirst); } catch (const std::exception& error) {
  Lose(error.what());
}

void JobRecording::Ask(Duration patience) {
  ServerSession& server = server_.emplace(patience);
  server.Require(kMinorOfJobs, "to record a job");
  waits_.BeginPart(MonotonicClock::now() - began_);
  server.BeginRecordingOfJob(job_);
  WaitForAnswer(patience);
  missing_ += MonotonicClock::now() - missing_since_;
  records_ = true;
}

void JobRecording::Advance() noexcept try {
  if (server_) {
    Take();
  } else if (MonotonicClock::now() >= next()) {
    Ask(kShortPatience);
  }
} catch (const std::exception& error) {
  Lose(error.what());
}

void JobRecording::End() noexcept try {
  if (server_) {
    server_->StopRecording();
    WaitForAnswer(ServerSession::kPatience);
    server_.reset();
  } else {
    missing_ += MonotonicClock::now() - missing_since_;
  }
  length_ = MonotonicClock::now() - began_;
  waits_.Finish(length_);
} catch (const std::exception& error) {
  Lose(error.what());
  length_ = MonotonicClock::now() - began_;
  waits_.Finish(length_);
}

bool JobRecording::Take() {
  for (;;) {
    ipc::Packet packet;
    switch (server_->Take(packet)) {
      case ipc::Received::kNothing:
        return false;
      case ipc::Received::kMessage:
        if (packet.header().type == ipc::MessageType::kReply) {
          ServerSession::Check(packet.As<ipc::Reply>());
          return true;
        }
        waits_.Take(packet);
        continue;
      default:
        throw CommandError(kExitNoServer, "the server ended the connection");
    }
  }
}

void JobRecording::WaitForAnswer(Duration patience) {
  const TimePoint end = MonotonicClock::now() + patience;
  while (!Take()) {
    const Duration left = end - MonotonicClock::now();
    if (left <= Duration::zero()) throw CommandError(kExitFailed, "the server does not answer");
    pollfd ready{server_->fd(), POLLIN, 0};
    poll(&ready, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

void JobRecording::Lose(const char* problem) {
  const TimePoint now = MonotonicClock::now();
  ask_at_ = now + kAskEvery;
  if (problem_.empty()) problem_ = problem;
  if (std::exchange(records_, false)) missing_since_ = now;
  server_.reset();
}

}  // namespace xsched::cli
