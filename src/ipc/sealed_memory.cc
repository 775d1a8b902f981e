#include "ipc/sealed_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

namespace xsched::ipc {

Result<> CheckSealedMemory(int memfd, size_t size, const char* what) {
  constexpr int kNeeded = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = fcntl(memfd, F_GET_SEALS);
  if (seals < 0) return Error::FromErrno(errno, "%s is not a memfd", what);
  if ((seals & kNeeded) != kNeeded)
    return Error::Make("%s is not sealed against shrinking and growing", what);
  if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
    return Error::Make("%s is sealed against writing", what);
  struct stat status {};
  if (fstat(memfd, &status) != 0) return Error::FromErrno(errno, "cannot look at %s", what);
  if (status.st_size != static_cast<off_t>(size)) {
    return Error::Make("%s has %lld bytes instead of %zu", what, static_cast<long long>(status.st_size),
                       size);
  }
  // The block size does not show whether huge pages are reserved: it is also a huge page's if the kernel
  // itself uses huge pages for shared memory (shmem_enabled).
  struct statfs filesystem {};
  if (fstatfs(memfd, &filesystem) != 0) return Error::FromErrno(errno, "cannot look at %s", what);
  if (filesystem.f_type == HUGETLBFS_MAGIC) return Error::Make("%s is not made of ordinary pages", what);
  return {};
}

}  // namespace xsched::ipc
