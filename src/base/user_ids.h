// Which user ids stand for one user each. In a user namespace (a container without root's rights, for
// instance), the kernel shows all users that the namespace does not know under one number. Who has that
// number may be anybody.
#pragma once

#include <sys/types.h>

namespace xsched {

// True if the id may stand for any of several users. Reads /proc: not for paths that must be fast.
bool StandsForSeveral(uid_t user);

// The same, from the texts of /proc/self/uid_map and of /proc/sys/kernel/overflowuid.
bool StandsForSeveral(uid_t user, const char* uid_map, const char* overflow_uid);

}  // namespace xsched
