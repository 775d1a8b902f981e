#include "base/trusted_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/user_ids.h"

namespace xsched {

bool IsTrustedSocket(const char* path) {
  struct stat file {};
  if (lstat(path, &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
  return file.st_uid == 0 || file.st_uid == geteuid() || StandsForSeveral(file.st_uid);
}

}  // namespace xsched
