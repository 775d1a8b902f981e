// Where the server's messages go: stderr, in most cases. Writing never waits. Whoever should read them may
// have stopped, and a server that waits for its reader holds all of its clients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace xsched::server {

class LogOutput {
 public:
  // `fd` stays the caller's, open, and as it is for others who have it.
  explicit LogOutput(int fd);

  // A line that finds no room is dropped, and counted in front of the next one that does. Not thread-safe.
  void Write(std::string_view line);

 private:
  bool TryWrite(std::string_view text) const;

  int fd_;
  UniqueFd own_;  // the same pipe or terminal, opened anew so that it does not block
  bool may_block_ = false;
  uint64_t dropped_ = 0;
};

// Makes `output`, which stays the caller's, the place of all that spdlog says.
void SendLogTo(LogOutput& output);

}  // namespace xsched::server
