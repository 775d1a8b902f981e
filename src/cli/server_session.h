// A tool's connection to the server.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "ipc/client.h"

namespace xsched::cli {

// The protocol's minor version that brought chains of policies, what they decide about, k, active windows,
// recordings and weights.
inline constexpr uint16_t kMinorOfChains = 4;

// The one that brought what the server remembers.
inline constexpr uint16_t kMinorOfHistory = 5;

// The one that brought recordings of jobs.
inline constexpr uint16_t kMinorOfJobs = 6;

// The one that brought the accounts of users and processes.
inline constexpr uint16_t kMinorOfAccounts = 6;

// The one that brought tenants.
inline constexpr uint16_t kMinorOfTenants = 7;

// The one that brought laxities without their priorities.
inline constexpr uint16_t kMinorOfLaxityTime = 10;

class ServerSession {
 public:
  static constexpr Duration kPatience = std::chrono::seconds(5);

  // Throws CommandError (kExitNoServer). `patience`: how long the server may take for an answer. One that
  // takes longer has ended the session: whatever is asked then throws kExitNoServer.
  explicit ServerSession(Duration patience = kPatience);

  std::vector<ipc::QueueInfo> List();
  ipc::Status Status();
  // What users, processes and tenants have had. An older server sends no tenants.
  struct Used {
    std::vector<ipc::Usage> accounts;  // of users and processes
    std::vector<ipc::Tenant> tenants;
  };
  Used Usage();
  // Returns the number of changed queues, and what was corrected. Throws CommandError with the server's
  // reason.
  ipc::Reply SetHints(const ipc::SetHints& request);
  uint32_t SetConfig(const ipc::SetConfig& request);
  void SetPolicy(const ipc::SetPolicy& request);
  uint32_t SetActiveWindow(const ipc::SetActiveWindow& request);
  // Asks for a recording of the queues of `pid` (0: of all). From then on Take gets the answer, and what is
  // recorded; nothing else may be asked.
  void BeginRecording(int32_t pid);
  // Likewise of the queues of a job (XSCHED_JOB).
  void BeginRecordingOfJob(uint64_t job);
  // Asks for what the server remembers of this time until now. Take gets it, and then a kReply.
  void AskForLast(Duration time);
  // Likewise, and calls take(packet) for each message of it. Returns how much of this time the server
  // remembers.
  Duration GetLast(Duration time, const std::function<void(const ipc::Packet&)>& take);
  bool IsAtLeast(uint16_t minor) const { return minor_ >= minor; }
  // Take gets the rest, and then a kReply.
  void StopRecording();
  // The next message, if there is one.
  ipc::Received Take(ipc::Packet& packet) { return ipc::ReceivePacket(socket_.get(), packet); }
  int fd() const { return socket_.get(); }
  // Throws CommandError with the server's reason, unless it did what was asked.
  static void Check(const ipc::Reply& reply);
  // Throws CommandError: the server is older than protocol version 1.`minor`, which is needed for `what`.
  void Require(uint16_t minor, const char* what) const;

  const std::string& path() const { return path_; }

 private:
  template <typename T>
  void Ask(const T& request);
  // Of queues.
  template <typename T>
  ipc::Reply Change(const T& request);
  // All messages of these types before the answer's end.
  template <typename... T>
  std::tuple<std::vector<T>...> TakeAll();
  ipc::Packet Next();

  const Duration patience_;
  UniqueFd socket_;
  std::string path_;
  uint16_t minor_ = 0;  // the server's
};

// True if a server answers. Throws nothing.
bool ServerAnswers();

}  // namespace xsched::cli
