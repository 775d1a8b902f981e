// Makes connections as another user. Needs root.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>

namespace xsched::server::testing {

// Connections that are made meanwhile are those of this user.
class ActingAs {
 public:
  explicit ActingAs(uid_t user) {
    if (seteuid(user) != 0) throw std::runtime_error("cannot act as another user");
  }
  ~ActingAs() {
    if (seteuid(0) != 0) std::terminate();
  }
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
};

}  // namespace xsched::server::testing
