// The API server, as far as the agent can see it: nodes, pods, PriorityClasses (there are none),
// ResourceClaims and ResourceSlices. It
// checks each request: its token, and that a body has the published members only, each of its type, with
// values that the real one would accept.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "kubernetes/testing/patience.h"

namespace xsched::kubernetes::testing {

inline constexpr const char* kNodeName = "node-1.example";
inline constexpr const char* kNodeUid = "8f1c2f6e-0000-4000-8000-000000000001";

class FakeApiServer {
 public:
  // `account`: a folder, in which it puts the token of the agent.
  explicit FakeApiServer(const std::string& account);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  const std::string& url() const { return url_; }

  // Without the feature DRAConsumableCapacity it drops the members that belong to it.
  void SetConsumableCapacity(bool is_there);
  // While it is down, it answers 503 to everything.
  void SetDown(bool is_down);
  // Without the group resource.k8s.io/v1 it answers 404 to all that is of it.
  void SetClaimsAreServed(bool are_served);
  // As when the node is registered anew.
  void SetNodeUid(const std::string& uid);
  void PutClaim(const std::string& name_space, const std::string& name, nlohmann::json claim);
  void RemoveClaim(const std::string& name_space, const std::string& name);
  // `pod`: as the API has it; its uid is its identity.
  void PutPod(nlohmann::json pod);
  void RemovePods();
  // Requests whose line begins so come and wait, until all answers are released.
  void HoldAnswers(const std::string& begin);
  void ReleaseAnswers();
  // As a kubelet does that starts.
  void RemoveSlices();

  // The slices, as soon as `is_it` is true of them. Null: that was not so in time.
  template <typename IsIt>
  nlohmann::json WaitForSlices(IsIt&& is_it) {
    std::unique_lock lock(mutex_);
    const bool has_come = changed_.wait_for(lock, kPatience, [&] { return is_it(Slices()); });
    return has_come ? Slices() : nlohmann::json();
  }
  // How many requests there were whose line begins so ("GET /apis/…").
  int Count(const std::string& begin) const;
  // Requests that a real one would not have understood or allowed.
  std::vector<std::string> faults() const;

 private:
  struct Request {
    std::string method;
    std::string path;                            // with its query
    std::map<std::string, std::string> headers;  // names in small letters
    std::string body;
  };
  struct Answer {
    int status = 200;
    nlohmann::json body;
  };

  void Serve();
  void ServeOne(int connection);
  Answer AnswerTo(const Request& request);
  Answer AnswerToSlices(const Request& request);
  Answer Create(nlohmann::json slice);
  Answer Replace(const std::string& name, nlohmann::json slice);
  void Keep(nlohmann::json& slice);
  nlohmann::json Slices() const;
  Answer Fault(const Request& request, const std::string& why);

  const std::string token_ = "token-of-the-agent";
  std::string url_;
  UniqueFd listener_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool has_consumable_capacity_ = true;
  bool is_down_ = false;
  bool serves_claims_ = true;
  std::string node_uid_ = kNodeUid;
  std::optional<std::string> held_;  // what the lines of requests that wait begin with
  int version_ = 0;
  std::map<std::string, nlohmann::json> slices_;  // by name
  std::map<std::string, nlohmann::json> claims_;  // by path
  std::map<std::string, nlohmann::json> pods_;    // by uid
  std::vector<std::string> requests_;
  std::vector<std::string> faults_;
  std::thread server_;
};

}  // namespace xsched::kubernetes::testing
