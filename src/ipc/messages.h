// What travels over the socket: the rare things. Progress and gates go through shared memory instead
// (control_block.h).
//
// The socket is a Unix SOCK_SEQPACKET: one packet is one message, so there are no partial messages. Each
// begins with a Header; `size` is the length of the whole packet. All integers are in host byte order.
//
// Compatibility. kMajor changes when old peers cannot work with new ones any more: the server then answers
// kRejected. kMinor counts additions. A message may be longer or shorter than the receiver's struct: what is
// missing reads as zero, what is too much is ignored, so fields are only ever appended, and zero means "as
// before". A message of unknown type from an agreed peer is ignored, except by the server, which answers
// kReply with kXSchedErrorNotSupported.
//
// An agent's session:                           A tool's session:
//   client -> kHello (+ 2 fds)                    client -> kHello (role kTool, no fds)
//   server -> kWelcome or kRejected               server -> kWelcome or kRejected
//   client -> kQueueCreated, kQueueHints, …       client -> kList | kSetHints | kSetPolicy | kGetStatus
//   server -> kPong on kPing, kWake               server -> kQueueInfo* kReply | kReply | kStatus
//   server -> kProcessSlice, kQueueHints, kReply  (requests are answered in order)
//   either end closes
//
// An agent is told with kReply what the server did not do: kXSchedErrorNotAllowed, it schedules no more
// queues of this user (the queue runs unscheduled, and the client speaks of it as of any other).
#pragma once

#include <cstdint>

#include "xsched/types.h"

namespace xsched::ipc {

inline constexpr uint16_t kMajor = 1;
// 1: kProcessSlice; kQueueHints from the server; kReply to agents.
// 2: Hello::job; QueueInfo says why a queue waits; agents ping while anything is taken from them.
inline constexpr uint16_t kMinor = 2;
inline constexpr uint32_t kMaxMessage = 1024;  // bytes; a longer packet is an error

enum class MessageType : uint16_t {
  kHello = 1,
  kWelcome = 2,
  kRejected = 3,
  kQueueCreated = 4,
  kQueueDestroyed = 5,
  kQueueHints = 6,
  kQueueConfig = 7,
  kQueueAbsent = 8,
  kTimeslice = 9,
  kPing = 10,
  kPong = 11,
  kWake = 12,
  kProcessSlice = 13,
  kList = 20,
  kQueueInfo = 21,
  kSetHints = 22,
  kSetPolicy = 23,
  kGetStatus = 24,
  kStatus = 25,
  kReply = 26,
};

struct Header {
  MessageType type;
  uint16_t reserved;
  uint32_t size;
};

enum class Role : uint32_t { kAgent = 1, kTool = 2 };

// First message of a connection. An agent adds two descriptors (SCM_RIGHTS), in this order: the segment's
// memfd, sealed with F_SEAL_SHRINK and F_SEAL_GROW; the eventfd that wakes the server. The server never reads
// that eventfd and writes none of a client's: either could block it. It wakes an agent by kWake.
struct Hello {
  static constexpr MessageType kType = MessageType::kHello;
  Header header;
  uint16_t major;
  uint16_t minor;
  Role role;
  int32_t pid;    // as the client sees itself; for display only
  char name[64];  // program name; for display only
  uint64_t job;   // agents of one job (XSCHED_JOB) send the same number; 0: none
};

struct Welcome {
  static constexpr MessageType kType = MessageType::kWelcome;
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t reserved;
  uint64_t client_id;
};

struct Rejected {
  static constexpr MessageType kType = MessageType::kRejected;
  Header header;
  uint16_t major;  // the server's
  uint16_t minor;
  uint32_t reserved;
  char reason[200];
};

// The wire form of sched::Hints.
struct WireHints {
  int32_t priority;
  int32_t utilization;
  int64_t deadline_us;
  int64_t laxity_us;
  int32_t lax_priority;
  int32_t critical_priority;
};

// QueueCreated::traits.
// The device opens and closes the queue's gates by itself, so that its agent need not be woken for them.
inline constexpr uint32_t kTraitGatesInLine = 1u << 0;
// At level 3, the device divides its time between the process and others.
inline constexpr uint32_t kTraitTimeSlices = 1u << 1;

// `index` names the queue's control block. It may be used again after kQueueDestroyed.
struct QueueCreated {
  static constexpr MessageType kType = MessageType::kQueueCreated;
  Header header;
  uint32_t index;
  uint32_t level;   // XPreemptLevel in use
  uint64_t device;  // XDevice
  WireHints hints;
  int64_t threshold;
  int64_t batch_size;
  uint32_t platform;  // XPlatform
  uint32_t traits;
  uint64_t handle;       // the client's XQueueHandle; for display, and for kQueueHints
  char device_name[96];  // for display only
};

struct QueueDestroyed {
  static constexpr MessageType kType = MessageType::kQueueDestroyed;
  Header header;
  uint32_t index;
  uint32_t reserved;
};

// From an agent: what its program hints. From the server: what others did (kSetHints); the agent keeps it, so
// that it outlives the server.
struct QueueHints {
  static constexpr MessageType kType = MessageType::kQueueHints;
  Header header;
  uint32_t index;
  uint32_t reserved;
  WireHints hints;
  uint64_t handle;  // from the server: as in kQueueCreated, since `index` may have another queue by now
};

struct QueueConfig {
  static constexpr MessageType kType = MessageType::kQueueConfig;
  Header header;
  uint32_t index;
  uint32_t level;
  int64_t threshold;
  int64_t batch_size;
};

// The program suspended the queue itself (absent = 1) or resumed it (0).
struct QueueAbsent {
  static constexpr MessageType kType = MessageType::kQueueAbsent;
  Header header;
  uint32_t index;
  uint32_t absent;
};

// A hint to the policy, from any client that may (XHintTimeslice).
struct TimesliceHint {
  static constexpr MessageType kType = MessageType::kTimeslice;
  Header header;
  int64_t timeslice_us;
};

struct Ping {
  static constexpr MessageType kType = MessageType::kPing;
  Header header;
  uint64_t cookie;
};
struct Pong {
  static constexpr MessageType kType = MessageType::kPong;
  Header header;
  uint64_t cookie;
};

// The control blocks of this client have changed in a way that its agent must act on.
struct Wake {
  static constexpr MessageType kType = MessageType::kWake;
  Header header;
};

// Level 3: how long the client's process may keep a device at a stretch while others want it.
struct ProcessSlice {
  static constexpr MessageType kType = MessageType::kProcessSlice;
  Header header;
  uint64_t device;    // XDevice
  uint64_t slice_us;  // 0: as the device's driver has it; all ones: not at all, another process has its turn
};

// ---- tools ----

struct List {
  static constexpr MessageType kType = MessageType::kList;
  Header header;
};

// One per queue that the caller may see; then a kReply.
struct QueueInfo {
  static constexpr MessageType kType = MessageType::kQueueInfo;
  Header header;
  uint64_t queue_id;  // server-wide; what kSetHints names
  uint64_t client_id;
  uint64_t handle;
  uint64_t device;
  int32_t pid;  // by the kernel's word (SO_PEERCRED)
  uint32_t uid;
  uint32_t platform;
  uint32_t level;
  uint32_t state;  // sched::QueueState
  uint32_t run;    // 0: held
  uint32_t tracked;
  uint32_t gated;
  uint32_t stalled;
  uint32_t absent;
  WireHints hints;
  int64_t threshold;
  int64_t batch_size;
  uint64_t submitted;
  uint64_t retired;
  uint64_t service_ns;
  uint64_t waiting_ns;
  uint64_t holds;
  uint64_t incidents;
  char name[64];
  char device_name[96];
  // Why a queue that has work does not run.
  uint32_t wait_reason;  // sched::WaitReason, or one of those below
  int32_t waits_for_pid;
  uint64_t waits_for_queue;   // kHeld: the queue with the best claim; 0: see waits_for_pid
  uint64_t waiting_since_ns;  // how long ago it began to wait
  char waits_for_name[64];
};

// QueueInfo::wait_reason: what the server alone knows.
inline constexpr uint32_t kWaitProcessStopped = 100;
inline constexpr uint32_t kWaitProcessSilent = 101;  // it was asked, and does not answer
// QueueInfo::waits_for_pid where waits_for_queue is 0.
inline constexpr int32_t kWaitsForUnknown = 0;
inline constexpr int32_t kWaitsForAnotherUser = -1;  // whose queues the caller may not see

enum : uint32_t {
  kHintPriority = 1u << 0,
  kHintUtilization = 1u << 1,
  kHintDeadline = 1u << 2,
  kHintLaxity = 1u << 3,
};

// Sets the hints named in `mask` on one queue, or on every queue of a process that the caller may hint.
struct SetHints {
  static constexpr MessageType kType = MessageType::kSetHints;
  Header header;
  uint64_t queue_id;  // 0: by pid
  int32_t pid;
  uint32_t mask;
  WireHints hints;
};

// policy 0: leave it; timeslice_us 0: leave it. Allowed to root, the server's own user and the admin group.
struct SetPolicy {
  static constexpr MessageType kType = MessageType::kSetPolicy;
  Header header;
  uint32_t policy;  // XPolicyType
  uint32_t reserved;
  int64_t timeslice_us;
};

struct GetStatus {
  static constexpr MessageType kType = MessageType::kGetStatus;
  Header header;
};

struct Status {
  static constexpr MessageType kType = MessageType::kStatus;
  Header header;
  uint16_t major;
  uint16_t minor;
  uint32_t policy;
  int64_t timeslice_us;
  int32_t pid;
  uint32_t uid;
  uint64_t uptime_ns;
  uint32_t clients;
  uint32_t queues;
  uint64_t decisions;
  uint64_t state_changes;
  uint64_t incidents;
  uint64_t rejected;  // connections closed for breaking the protocol
  uint32_t is_admin;  // may the caller set the policy and hint everybody's queues?
  uint32_t reserved;
  char version[32];
};

// Ends the answer to every tool request but kGetStatus.
struct Reply {
  static constexpr MessageType kType = MessageType::kReply;
  Header header;
  uint32_t result;  // XResult
  uint32_t count;   // queues listed or hinted
  char text[200];   // why not, for people; empty on success
};

}  // namespace xsched::ipc
