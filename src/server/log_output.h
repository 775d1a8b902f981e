// The output of the server's messages, in most cases stderr. Writing never waits: the reader may have
// stopped, and a server that waits for it would hold all of its clients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace xsched::server {

class LogOutput {
 public:
  // `fd` stays the caller's. It stays open, and nothing changes for other processes that share it.
  explicit LogOutput(int fd);

  // If there is no room for a line, it is dropped. The next line that is written comes after a line with the
  // number of dropped ones. Not thread-safe.
  void Write(std::string_view line);

 private:
  bool TryWrite(std::string_view text) const;

  int fd_;
  UniqueFd own_;  // the same pipe or terminal, opened anew so that it does not block
  bool may_block_ = false;
  uint64_t dropped_ = 0;
};

// Sends all messages of spdlog to `output`, which stays the caller's.
void SendLogTo(LogOutput& output);

}  // namespace xsched::server
