#include "server/log_output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace xsched::server {
namespace {

class Sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit Sink(LogOutput& output) : output_(output) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    output_.Write({line.data(), line.size()});
  }
  void flush_() override {}

  LogOutput& output_;
};

}  // namespace

LogOutput::LogOutput(int fd) : fd_(fd) {
  struct stat status {};
  // Writing to a file never waits. If it were opened again, writing would start at its beginning.
  if (fstat(fd, &status) != 0 || S_ISREG(status.st_mode) || S_ISSOCK(status.st_mode)) return;
  // O_NONBLOCK applies to the open file description, which others may share. So open it once more.
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  own_.Reset(open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  may_block_ = !own_;
}

void LogOutput::Write(std::string_view line) {
  if (dropped_ != 0) {
    char note[96];
    int length = snprintf(note, sizeof note, "xserver: %llu lines were dropped, because nobody read them\n",
                          static_cast<unsigned long long>(dropped_));
    if (!TryWrite({note, static_cast<size_t>(length)})) {
      ++dropped_;
      return;
    }
    dropped_ = 0;
  }
  if (!TryWrite(line)) ++dropped_;
}

bool LogOutput::TryWrite(std::string_view text) const {
  // A pipe takes up to this size atomically.
  size_t size = std::min<size_t>(text.size(), PIPE_BUF);
  ssize_t sent = send(fd_, text.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent >= 0;
  // There is room for one line, unless another process fills it at this moment.
  pollfd room{fd_, POLLOUT, 0};
  if (may_block_ && (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)) return false;
  return write(own_ ? own_.get() : fd_, text.data(), size) >= 0;
}

void SendLogTo(LogOutput& output) {
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("xserver", std::make_shared<Sink>(output)));
  // spdlog's own error handler would write to stderr and might wait.
  spdlog::set_error_handler([](const std::string&) {});
}

}  // namespace xsched::server
