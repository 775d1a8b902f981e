// Closes descriptors that came from clients. A client can make closing take arbitrarily long (for a FUSE
// file, its daemon is notified first; a socket may linger). So it happens on other threads, one for each user
// who has something to close, so that no user's descriptors keep those of another open. The server's thread
// never waits here.
#pragma once

#include <sys/types.h>

#include <memory>
#include <unordered_map>
#include <utility>

#include "base/fd.h"
#include "server/subordinate_users.h"

namespace xsched::server {

class Disposer {
 public:
  explicit Disposer(SubordinateUsers subordinates = {}) : subordinates_(std::move(subordinates)) {}
  // Its threads close what they have, and end.
  ~Disposer();
  Disposer(const Disposer&) = delete;
  Disposer& operator=(const Disposer&) = delete;

  void Take(uid_t user, UniqueFd fd) noexcept;
  // The user has kMaxUndisposedOfUser descriptors that are still to be closed: take no more.
  bool IsFull(uid_t user) const noexcept;
  // If a thread could not be started, its work waits. Call this from time to time.
  void StartIfNeeded() noexcept;

 private:
  struct Line;
  static bool IsIdle(Line& line) noexcept;
  static void Run(const std::shared_ptr<Line>& line);
  void Start(Line& line, const std::shared_ptr<Line>& shared) noexcept;

  SubordinateUsers subordinates_;
  // Shared with the threads, which may be blocked when this is destroyed.
  std::unordered_map<uid_t, std::shared_ptr<Line>> lines_;
  bool start_due_ = false;  // some line has work, and no thread
};

}  // namespace xsched::server
