// What the agent knows of its node: written by the thread that looks at the GPUs, read by those of gRPC.
//
// Its lock is in node_state.cc: gRPC's headers define some macros of base/mutex.h otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cli/cdi/specification.h"
#include "kubernetes/gpus.h"

namespace xsched::kubernetes {

struct Node {
  std::vector<Gpu> gpus;
  cli::CdiSpecification shares;
};

class NodeState {
 public:
  NodeState();
  ~NodeState();

  void Set(Node node);
  // REQUIRES: it has been set.
  std::shared_ptr<const Node> now() const;

  // Nobody waits any longer, until Begin.
  void End();
  void Begin();

  // Counts as a follower while it exists.
  class Follower {
   public:
    explicit Follower(NodeState& state);
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    // What there is, if this follower has not had it yet; null: nothing new has come for a moment, or
    // HasEnded.
    std::shared_ptr<const Node> Next();
    bool HasEnded() const;

   private:
    NodeState& state_;
    uint64_t seen_ = 0;
  };
  bool IsFollowed() const;

 private:
  struct Guarded;
  std::unique_ptr<Guarded> guarded_;
};

}  // namespace xsched::kubernetes
