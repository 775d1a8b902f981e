// Whether a socket in a folder where everybody may make files is one that this user would use.
#pragma once

namespace xsched {

// True if `path` is a socket, and root or this user has made it. False if it is anything else: another user
// may have made it to mislead us. In a user namespace that does not know root, the socket of any user whom
// the namespace does not know is trusted: root's looks the same there.
bool IsTrustedSocket(const char* path);

}  // namespace xsched
