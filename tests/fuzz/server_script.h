// Turns bytes into actions of hostile and honest clients of a server in this process: connections, messages,
// any descriptors, any words in their segments, doorbells, and time. Each script has a server of its own, in
// virtual time: what it reaches depends on its bytes alone. The fuzzers and a test share these entry points.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fuzz/bytes.h"
#include "server/server.h"
#include "server/testing/server_process.h"
#include "server/testing/test_client.h"

namespace xsched::server::testing {

class ServerScript {
 public:
  ServerScript();
  ~ServerScript();

  // Messages in any order and shape, from up to four clients. Aborts if the server no longer serves an honest
  // one.
  void RunSession(std::span<const uint8_t> bytes);
  // Two agents with four queues each, which are recorded. Then words of their segments change, and doorbells
  // ring.
  void RunSegment(std::span<const uint8_t> bytes);

 private:
  using Bytes = fuzz::Bytes;
  struct Client;

  void BeginServer();
  void EndServer();
  void Round();
  void PassTime(Bytes& bytes);
  void SetAnyPolicy(Bytes& bytes);
  static void Work(Client& client, Bytes& bytes);
  void Connect(Client& client, bool confined = false);
  void BeginAgent(Client& client, Bytes& bytes);
  void SendQueueMessage(Client& client, Bytes& bytes);
  void ChangeTenants(Bytes& bytes);
  static void ReadAll(Client& client);
  void SendHello(Client& client, Bytes& bytes);
  void SendMany(Client& client, Bytes& bytes);
  void SendQueueCreated(Client& client, Bytes& bytes);
  void SendAnyMessage(Client& client, Bytes& bytes);
  void SendGarbage(Client& client, Bytes& bytes);
  void SendToolRequest(Client& client, Bytes& bytes);
  void WriteSegment(ipc::Segment& segment, Bytes& bytes);
  std::vector<int> AnyDescriptors(Client& client, Bytes& bytes) const;
  void ExpectBystanderServed();

  TempFolder folder_;
  Listener listener_;
  const std::string tenants_;  // the file
  const UniqueFd service_manager_;
  std::optional<Server> server_;
  ipc::SocketPath socket_{};
  UniqueFd null_;
  std::unique_ptr<TestConnection> bystander_;
  std::vector<Client> clients_;

  // What the server is told of its surroundings.
  static inline TimePoint now_;
  static inline bool confined_ = false;
  static inline bool stopped_ = false;
};

}  // namespace xsched::server::testing
