// The server's socket: made with its folder, mode and group; one server per path; gone when the server is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

// Another server is there already.
class AlreadyRunning : public std::exception {
 public:
  explicit AlreadyRunning(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

class Listener {
 public:
  // Throws AlreadyRunning, or std::runtime_error with a message for users.
  Listener(const std::string& path, mode_t mode, std::optional<gid_t> group);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int fd() const { return socket_.get(); }
  const std::string& path() const { return path_; }
  // The next connection, non-blocking. Empty: none is waiting (or it had to be turned away for lack of
  // descriptors).
  UniqueFd Accept();
  // Connections wait that could not even be turned away.
  bool exhausted() const { return exhausted_; }

 private:
  std::string path_;
  UniqueFd lock_;   // held for as long as the server lives; the kernel lets it go whatever happens
  UniqueFd spare_;  // given up for a moment to turn a connection away when there are no descriptors left
  UniqueFd socket_;
  bool exhausted_ = false;
  TimePoint warn_at_{};  // not before this time again
};

}  // namespace xsched::server
