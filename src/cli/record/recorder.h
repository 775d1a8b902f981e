// Gets a recording from the server, of what comes or of what was, and writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/programs/stop_signals.h"
#include "cli/record/recording_writer.h"
#include "cli/server_session.h"

namespace xsched::cli {

struct RecordingRequest {
  std::optional<Duration> length;  // not set: until a signal
  std::optional<Duration> last;    // what was, from so long ago until now
  std::string output;              // for messages
  bool anonymous = false;
  std::vector<int32_t> pids;  // empty: all
};

// Of options that take seconds.
Duration FromSeconds(double seconds);
// The help of the option --last.
inline constexpr const char* kLastHelp =
    "not what comes, but what the server remembers: of the last so many seconds";

class Recorder {
 public:
  // Throws CommandError.
  Recorder(const RecordingRequest& request, std::ostream& out);
  // Returns when the recording has ended. Throws CommandError.
  void Run();

  const RecordingWriter& writer() const { return writer_; }
  Duration length() const { return length_; }
  // Of what was: how much of the asked time the server remembers.
  Duration covered() const { return covered_; }
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

  const RecordingRequest& request_;
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
  Duration covered_{};
  std::string problem_;
};

// Writes a recording of what the server remembers of the last time. Says so if that is less. Returns how much
// of it that is. Throws CommandError.
Duration WriteLast(Duration time, std::ostream& out);
// Says so if the server remembers less than was asked for.
void WarnOfGap(Duration covered, Duration asked);

}  // namespace xsched::cli
