#include "server/disposer.h"

#include <deque>
#include <new>
#include <thread>

#include "base/mutex.h"
#include "server/limits.h"

namespace xsched::server {
namespace {

// A thread without work ends after this time.
constexpr Duration kIdle = std::chrono::seconds(4);
// More lines than this are looked through for those without work.
constexpr size_t kMostLines = 1024;

}  // namespace

struct Disposer::Line {
  Mutex<LockRank::kDisposer> mutex;
  Condition filled;
  std::deque<UniqueFd> fds GUARDED_BY(mutex);
  size_t undisposed GUARDED_BY(mutex) = 0;  // these, and the one that is being closed
  bool has_thread GUARDED_BY(mutex) = false;
  bool is_complete GUARDED_BY(mutex) = false;  // nothing more comes
};

Disposer::~Disposer() {
  for (auto& [user, line] : lines_) {
    {
      MutexLock lock(line->mutex);
      line->is_complete = true;
    }
    line->filled.NotifyAll();
  }
}

void Disposer::Take(uid_t user, UniqueFd fd) noexcept {
  if (!fd) return;
  try {
    if (lines_.size() >= kMostLines) std::erase_if(lines_, [](auto& entry) { return IsIdle(*entry.second); });
    std::shared_ptr<Line>& shared = lines_[subordinates_.OwnerOf(user)];
    if (shared == nullptr) shared = std::make_shared<Line>();
    Line& line = *shared;
    {
      MutexLock lock(line.mutex);
      line.fds.emplace_back();
      line.fds.back() = std::move(fd);
      ++line.undisposed;
    }
    line.filled.NotifyAll();
    Start(line, shared);
  } catch (const std::bad_alloc&) {
    // Closing it here could block the server, so it stays open: one descriptor is lost.
    static_cast<void>(fd.Release());
  }
}

bool Disposer::IsFull(uid_t user) const noexcept {
  const auto found = lines_.find(subordinates_.OwnerOf(user));
  if (found == lines_.end()) return false;
  Line& line = *found->second;
  MutexLock lock(line.mutex);
  return line.undisposed >= kMaxUndisposedOfUser;
}

bool Disposer::IsIdle(Line& line) noexcept {
  MutexLock lock(line.mutex);
  return line.undisposed == 0 && !line.has_thread;
}

void Disposer::StartIfNeeded() noexcept {
  if (!start_due_) return;
  start_due_ = false;
  for (auto& [user, line] : lines_) Start(*line, line);
}

void Disposer::Start(Line& line, const std::shared_ptr<Line>& shared) noexcept {
  {
    MutexLock lock(line.mutex);
    if (line.has_thread || line.fds.empty()) return;
    line.has_thread = true;
  }
  try {
    std::thread(Run, shared).detach();
  } catch (const std::exception&) {
    // There is no thread or no memory now.
    MutexLock lock(line.mutex);
    line.has_thread = false;
    start_due_ = true;
  }
}

void Disposer::Run(const std::shared_ptr<Line>& line) {
  for (;;) {
    UniqueFd fd;
    {
      MutexLock lock(line->mutex);
      const TimePoint ends_at = MonotonicClock::now() + kIdle;
      while (line->fds.empty() && !line->is_complete && MonotonicClock::now() < ends_at)
        line->filled.WaitUntil(line->mutex, ends_at);
      if (line->fds.empty()) {
        line->has_thread = false;
        return;
      }
      fd = std::move(line->fds.front());
      line->fds.pop_front();
    }
    fd.Reset();
    MutexLock lock(line->mutex);
    --line->undisposed;
  }
}

}  // namespace xsched::server
