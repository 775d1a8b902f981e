#include "base/user_ids.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

namespace xsched {
namespace {

constexpr unsigned long kUsers = 4294967295;  // all that there are

template <size_t kSize>
void Read(const char* path, char (&text)[kSize]) {
  UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t length = file ? read(file.get(), text, kSize - 1) : 0;
  text[length < 0 ? 0 : length] = '\0';
}

}  // namespace

bool StandsForSeveral(uid_t user, const char* uid_map, const char* overflow_uid) {
  constexpr unsigned long kDefault = 65534;
  char* end = nullptr;
  const unsigned long read = strtoul(overflow_uid, &end, 10);
  if (user != (end == overflow_uid ? kDefault : read)) return false;
  // Where all users are known, it is the number of one user: nobody.
  unsigned long first = 0;
  unsigned long outside = 0;
  unsigned long count = 0;
  return sscanf(uid_map, "%lu %lu %lu", &first, &outside, &count) == 3 && count < kUsers;
}

bool StandsForSeveral(uid_t user) {
  char uid_map[256];
  char overflow_uid[32];
  Read("/proc/self/uid_map", uid_map);
  Read("/proc/sys/kernel/overflowuid", overflow_uid);
  return StandsForSeveral(user, uid_map, overflow_uid);
}

}  // namespace xsched
