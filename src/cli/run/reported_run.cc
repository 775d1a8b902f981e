#include "cli/run/reported_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/fd.h"
#include "cli/json_text.h"
#include "cli/output_file.h"
#include "cli/programs/foreground_program.h"
#include "cli/run/job_recording.h"
#include "cli/run/job_report.h"
#include "ipc/job.h"

namespace xsched::cli {
namespace {

UniqueFd Open(const std::string& file) {
  if (file.empty()) return {};
  UniqueFd opened(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!opened) throw CannotWrite(file, errno);
  return opened;
}

void Wait(ForegroundProgram& program, JobRecording& recording) {
  while (!program.has_ended()) {
    pollfd ready[] = {{program.fd(), POLLIN, 0}, {recording.fd(), POLLIN, 0}};
    int timeout = -1;
    if (recording.next() != kNever) {
      const Duration left = std::max(recording.next() - MonotonicClock::now(), Duration::zero());
      timeout = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    }
    poll(ready, 2, timeout);
    program.TakeSignals();
    recording.Advance();
  }
}

// Whoever was to read it may be gone: that is no reason to end in another way than the program.
void Write(const std::string& text, int fd) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t length = write(fd, text.data() + written, text.size() - written);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return;
    written += static_cast<size_t>(length);
  }
}

}  // namespace

void RunReported(const std::vector<std::string>& program, const ReportRequest& request) {
  const UniqueFd file = Open(request.file);
  ForegroundProgram running(program, file.get());
  JobRecording recording(ipc::JobNumber(request.job.c_str()));
  const TimePoint began = MonotonicClock::now();
  recording.Begin();
  running.Begin();
  Wait(running, recording);
  const Duration length = MonotonicClock::now() - began;
  recording.End();
  const JobOutcome outcome{.program = program,
                           .status = running.status(),
                           .length = length,
                           .job = recording.job(),
                           .job_is_older = request.job_is_older,
                           .missing = recording.missing(),
                           .problem = recording.problem()};
  if (file) {
    const nlohmann::ordered_json report = ReportJson(outcome, recording.waits());
    Write(JsonText(report) + "\n", file.get());
  } else {
    Write(ReportText(outcome, recording.waits()), STDERR_FILENO);
  }
  running.EndLikeIt();
}

}  // namespace xsched::cli
