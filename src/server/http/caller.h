// Who makes an HTTP request, and what this user may change: what the server's Unix socket would let the user
// change.
#pragma once

#include <netinet/in.h>
#include <sys/stat.h>

#include <istream>
#include <optional>

#include "server/access.h"

namespace xsched::server::http {

// The user at the other end of a TCP connection of this machine, from the kernel's table of connections in
// the format of /proc/net/tcp and /proc/net/tcp6. `client` and `server`: its two ends, IPv4.
//
// Nullopt: it is not there, or its process has closed it. The kernel shows such a connection with user 0, so
// this is not taken for root's.
std::optional<uid_t> UserInTable(std::istream& table, const sockaddr_in& client, const sockaddr_in& server);
// The same, from the running kernel.
std::optional<uid_t> UserOfConnection(const sockaddr_in& client, const sockaddr_in& server);

// The peer of a connection of TCP or of a Unix socket, of this machine. Nullopt: it is not known.
std::optional<Peer> PeerAt(int connection);

// The user with its groups.
Peer PeerFor(uid_t user);

// True if the file's mode lets the peer connect to this socket.
bool MayConnect(const Peer& peer, const struct stat& socket);

}  // namespace xsched::server::http
