// A server in this process, on a thread of its own, that counts its rounds and measures what they take; and
// two users: a bystander, and one who attacks. Needs root, to act as them.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "server/server.h"
#include "server/testing/acting_as.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::server::testing {

inline constexpr uid_t kBystander = 54321;
inline constexpr uid_t kAttacker = 54322;

class ServerUnderAttack {
 public:
  explicit ServerUnderAttack(const sched::PolicySetting& policy);
  ~ServerUnderAttack();

  const ipc::SocketPath& socket() const { return socket_; }
  // Between rounds, on the server's thread, because any other may have to wait for a processor:
  // `looks(round)`.
  void SetLooks(std::function<void(uint64_t)> looks);
  // The processor's time that the longest round took since the last call.
  Duration LongestRound() { return Duration(longest_ns_.exchange(0)); }

 private:
  TempFolder folder_;
  std::unique_ptr<Listener> listener_;
  ipc::SocketPath socket_{};
  std::mutex mutex_;
  std::function<void(uint64_t)> looks_;
  std::atomic<int64_t> longest_ns_{0};
  std::jthread thread_;
};

// An urgent and a less urgent program on a device of their own.
class Bystander {
 public:
  explicit Bystander(ServerUnderAttack& server);
  ~Bystander() { server_.SetLooks({}); }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  struct Hold {
    bool held = false;
    uint64_t rounds = 0;  // of the server, from when there was urgent work to the other's closed gate
    Duration time{};
  };
  // The urgent program gets work. Then the other one may go on.
  Hold HoldOnce();

 private:
  void LooksAfter(uint64_t round);

  static constexpr uint64_t kDevice = 424242;
  ServerUnderAttack& server_;
  // How often the server was told of urgent work, and how many of these holds the server's thread has
  // counted.
  std::atomic<uint64_t> told_{0};
  std::atomic<uint64_t> counted_{0};
  uint64_t rounds_ = 0;  // of the last one that was counted
  // Of the server's thread.
  uint64_t counting_ = 0;
  uint64_t first_round_ = 0;
  std::unique_ptr<TestAgent> low_;
  std::unique_ptr<TestAgent> urgent_;
};

}  // namespace xsched::server::testing
