#include "cli/run/job_recording.h"

#include <poll.h>

#include <algorithm>
#include <exception>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

constexpr Duration kAnswerTimeout = std::chrono::seconds(5);

}  // namespace

void JobRecording::Begin() noexcept try {
  ++asked_;
  Ask();
} catch (const std::exception& error) {
  Lose(error.what());
}

void JobRecording::Ask() {
  ServerSession& server = server_.emplace();
  server.Require(kMinorOfJobs, "to record a job");
  waits_.BeginPart(MonotonicClock::now() - began_);
  server.BeginRecordingOfJob(job_);
  WaitForAnswer();
  missing_ += MonotonicClock::now() - missing_since_;
}

void JobRecording::Advance() noexcept try {
  if (server_) {
    Take();
  } else if (MonotonicClock::now() >= next()) {
    Begin();
  }
} catch (const std::exception& error) {
  Lose(error.what());
}

void JobRecording::End() noexcept try {
  if (server_) {
    server_->StopRecording();
    WaitForAnswer();
    server_.reset();
  } else {
    missing_ += MonotonicClock::now() - missing_since_;
  }
  length_ = MonotonicClock::now() - began_;
  waits_.Finish(length_);
} catch (const std::exception& error) {
  Lose(error.what());
  length_ = MonotonicClock::now() - began_;
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

void JobRecording::WaitForAnswer() {
  const TimePoint end = MonotonicClock::now() + kAnswerTimeout;
  while (!Take()) {
    const Duration left = end - MonotonicClock::now();
    if (left <= Duration::zero()) throw CommandError(kExitFailed, "the server does not answer");
    pollfd ready{server_->fd(), POLLIN, 0};
    poll(&ready, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
}

void JobRecording::Lose(const char* problem) {
  const bool had_server = server_.has_value();
  server_.reset();
  if (problem_.empty()) problem_ = problem;
  if (!had_server) return;
  missing_since_ = MonotonicClock::now();
  asked_ = 1;
}

}  // namespace xsched::cli
