#include "server/segment_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <utility>

namespace xsched::server {
namespace {

// Of linux/userfaultfd.h, where that is older than Linux 5.11: accesses of this program, not of the kernel on
// its behalf. They need no privilege.
constexpr int kUserModeOnly = 1;

struct Segments {
  struct Entry {
    uint64_t connection;
    bool torn = false;
  };
  std::map<uintptr_t, Entry> by_address;
  bool any_torn = false;
};
// The signal handler runs on the thread that has touched the segment, while that thread changes none of this.
thread_local Segments segments;

struct sigaction former_action {};

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t MappedSize() { return (ipc::kSegmentSize + PageSize() - 1) / PageSize() * PageSize(); }

// The system call and not mmap(), which ThreadSanitizer takes for a write to the memory.
bool PutPrivatePage(uintptr_t address) {
  const long page = syscall(SYS_mmap, address / PageSize() * PageSize(), PageSize(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return page != -1;
}

void OnBusError(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const auto behind = segments.by_address.upper_bound(address);
  const auto found = behind == segments.by_address.begin() ? segments.by_address.end() : std::prev(behind);
  if (found != segments.by_address.end() && address - found->first < MappedSize() &&
      PutPrivatePage(address)) {
    found->second.torn = segments.any_torn = true;
  } else {
    // It is not ours: when this returns, it comes again, and is handled as without us.
    sigaction(signal, &former_action, nullptr);
  }
  errno = error;
}

UniqueFd NewUserfaultfd() {
  UniqueFd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly)));
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_SIGBUS | UFFD_FEATURE_MISSING_SHMEM;
  if (faults && ioctl(faults.get(), UFFDIO_API, &api) != 0) faults.Reset();
  return faults;
}

void HandleBusErrors() {
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  struct sigaction former {};
  sigaction(SIGBUS, &action, &former);
  if ((former.sa_flags & SA_SIGINFO) == 0 || former.sa_sigaction != OnBusError) former_action = former;
}

}  // namespace

SegmentGuard::SegmentGuard() : faults_(NewUserfaultfd()) {
  if (works()) HandleBusErrors();
}

Result<SegmentGuard::Watched> SegmentGuard::Watch(const ipc::Segment& segment, uint64_t connection) {
  if (!works()) return Watched();
  const auto address = reinterpret_cast<uintptr_t>(&segment);
  uffdio_register range{};
  range.range = {.start = address, .len = MappedSize()};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  if (ioctl(faults_.get(), UFFDIO_REGISTER, &range) != 0)
    return Error::FromErrno(errno, "cannot guard the segment");
  segments.by_address.insert_or_assign(address, Segments::Entry{connection});
  return Watched(&segment);
}

bool SegmentGuard::AnyTorn() { return std::exchange(segments.any_torn, false); }

uint64_t SegmentGuard::NextTorn(uintptr_t& from) {
  for (auto next = segments.by_address.lower_bound(from); next != segments.by_address.end(); ++next) {
    if (!std::exchange(next->second.torn, false)) continue;
    from = next->first + 1;
    return next->second.connection;
  }
  return 0;
}

SegmentGuard::Watched& SegmentGuard::Watched::operator=(Watched&& other) noexcept {
  std::swap(segment_, other.segment_);
  return *this;
}

SegmentGuard::Watched::~Watched() {
  if (segment_ != nullptr) segments.by_address.erase(reinterpret_cast<uintptr_t>(segment_));
}

}  // namespace xsched::server
