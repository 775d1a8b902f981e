// What the server records of a job, summed up while it runs. If the server ends, it is asked again as soon as
// one is there. Throws nothing: what is missing is said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "cli/explain/process_waits.h"
#include "cli/server_session.h"

namespace xsched::cli {

class JobRecording {
 public:
  explicit JobRecording(uint64_t job) : job_(job), began_(MonotonicClock::now()), missing_since_(began_) {}

  // Asks a server. Returns when it records.
  void Begin() noexcept;
  // -1: no server records.
  int fd() const { return server_ ? server_->fd() : -1; }
  // When to call Advance, if `fd` is not readable before.
  TimePoint next() const { return server_ ? kNever : ask_at_; }
  void Advance() noexcept;
  // Takes the rest.
  void End() noexcept;

  uint64_t job() const { return job_; }
  const ProcessWaits& waits() const { return waits_; }
  Duration length() const { return length_; }
  // For how long nothing was recorded, and why.
  Duration missing() const { return missing_; }
  const std::string& problem() const { return problem_; }

 private:
  void Ask(Duration patience);
  // What has come. True: the server's answer was among it.
  bool Take();
  void WaitForAnswer(Duration patience);
  void Lose(const char* problem);

  const uint64_t job_;
  const TimePoint began_;
  std::optional<ServerSession> server_;
  ProcessWaits waits_;
  TimePoint missing_since_;
  TimePoint ask_at_{};
  bool records_ = false;
  Duration missing_{};
  Duration length_{};
  std::string problem_;
};

}  // namespace xsched::cli
