// Limits on the resources that clients can use in the server, so that no user can take those of the others.
#pragma once

#include <cstddef>

#include "base/clock.h"

namespace xsched::server {

// No user may have more than a quarter of what there is.
inline constexpr size_t kMaxConnections = 16384;
inline constexpr size_t kMaxConnectionsOfUser = kMaxConnections / 4;
// Connections that have not said hello yet.
inline constexpr size_t kMaxUnidentified = 1024;
inline constexpr size_t kMaxUnidentifiedOfUser = kMaxUnidentified / 4;
// So many of both are kept free for administrators.
inline constexpr size_t kReservedForAdmins = 64;
// Descriptors that the user's clients sent and that are still to be closed.
inline constexpr size_t kMaxUndisposedOfUser = 64;
// Bytes that a client may leave unread, as the kernel counts them: half of what it allows.
inline constexpr int kMaxUnreadBytes = 32768;
// A decision takes time in proportion to the queues of a device. Queues beyond the limit run unscheduled.
inline constexpr size_t kMaxQueues = 32768;
inline constexpr size_t kMaxQueuesOfUser = kMaxQueues / 4;
// Likewise in proportion to the devices. Clients name them.
inline constexpr size_t kMaxDevicesOfUser = 128;
// The number of devices whose time slices an agent may leave unread: far more than a process uses.
inline constexpr size_t kMaxUnsentSlices = 1024;
// The number of displays of which the server keeps the active window.
inline constexpr int kMaxDisplaysOfUser = 64;
// Recordings of queues, each with the number of processes that it may name, and the number of messages that
// its tool may leave unread. Further ones are dropped and counted.
inline constexpr size_t kMaxRecordingsOfUser = 32;
inline constexpr size_t kMaxRecordedProcesses = 1024;
inline constexpr size_t kMaxUnreadRecords = 4096;
// What the server remembers of the last time: events of a user (3 MB) and of all, and descriptions of a
// user's queues that are gone.
inline constexpr size_t kMaxHistoryOfUser = 32768;
inline constexpr size_t kMaxHistory = 262144;
inline constexpr size_t kMaxGoneInHistory = 1024;
// What is counted for metrics (usage.h): users, and the accounts of each and of each process.
inline constexpr size_t kMaxUsersWithAccounts = 1024;
inline constexpr size_t kMaxAccountsOfUser = 64;
inline constexpr size_t kMaxAccountsOfProcess = 16;
// The queues whose requests are counted by themselves as well (queue_times.h).
inline constexpr size_t kMaxTimedQueues = 1024;
inline constexpr size_t kMaxTimedQueuesOfUser = kMaxTimedQueues / 4;
// The files by which a process shows which devices it can use: several for each device.
inline constexpr size_t kMaxDeviceFiles = 256;

// The number of groups that a client may be in. If it is in more, only its primary one counts.
inline constexpr size_t kMaxGroups = 1024;

// The number of tenants (tenants/tenant.h) that are told apart: of users whom no rule names, and of those
// that one rule makes for each job or the like.
inline constexpr size_t kMaxTenants = 1024;
// The number of pings that an agent may send without reading their answers.
inline constexpr int kMaxUnansweredPings = 8;

inline constexpr Duration kHelloTimeout = std::chrono::seconds(5);
// How long a tool may leave its answer unread.
inline constexpr Duration kUnreadTimeout = std::chrono::seconds(5);
// The same for a tool that records.
inline constexpr Duration kUnreadRecordTimeout = std::chrono::seconds(30);
// The number of messages per round of one client, so that it cannot delay the others.
inline constexpr int kMaxMessagesPerRound = 64;
// The number of connections that are accepted per round, and of processes that are looked at.
inline constexpr size_t kMaxAcceptedPerRound = 32;
inline constexpr size_t kMaxCheckedPerRound = 16;
// The number of recorded queues with work that are looked at per round, likewise.
inline constexpr size_t kMaxAskedPerRound = 128;
// The number of queues per round that one request changes, and that one list is sent; and of hints or
// settings that an agent is sent.
inline constexpr size_t kMaxChangedPerRound = 128;
inline constexpr size_t kMaxListedPerRound = 64;
inline constexpr size_t kMaxHintsPerRound = 64;
// The number of accounts per round that a tool is sent, and of queues, and agents without any, that are read
// for them.
inline constexpr size_t kMaxAccountsPerRound = 32;

}  // namespace xsched::server
