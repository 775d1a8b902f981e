// The server's socket. Creates it with its folder, mode and group, allows one server per path, and removes it
// at the end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace xsched::server {

// Another server listens at this path already.
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
  // The next connection, non-blocking. Empty: none is waiting, or none can be accepted.
  UniqueFd Accept();
  // True if there are no descriptors for the connection that was returned last: close it before anything
  // else.
  bool must_reject() const { return must_reject_; }
  // Takes a descriptor again for the next connection that must be rejected.
  void KeepSpare();
  // True if connections wait that could not even be rejected.
  bool exhausted() const { return exhausted_; }

 private:
  std::string path_;
  UniqueFd lock_;   // held while the server lives; the kernel releases it in any case
  UniqueFd spare_;  // closed for a moment to reject a connection when there are no descriptors left
  UniqueFd socket_;
  bool must_reject_ = false;
  bool exhausted_ = false;
  TimePoint warn_at_{};  // no further warning before this time
};

}  // namespace xsched::server
