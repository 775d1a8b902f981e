// Streams. All work enters them here: it goes into the queue, or into the graph that the stream's capture
// makes.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "context.h"
#include "cuda_api.h"
#include "device.h"

namespace standin {

struct Capture;
struct Node;

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

struct Stream : std::enable_shared_from_this<Stream> {
  enum class Kind { kOrdinary, kLegacy, kPerThread };
  Stream(Context& its_context, Kind its_kind, unsigned its_flags, int its_priority);

  Context* const context;
  const Kind kind;
  const unsigned flags;
  int priority;
  const uint64_t id;
  std::deque<CommandPtr> queue;
  CommandPtr last;  // null: nothing left to do
  BlockedCalls waiting_for_room;
  std::shared_ptr<Capture> capture;
  std::vector<Node*> capture_tips;  // what the next captured node depends on

  // Ordered with the legacy default stream.
  bool blocking() const { return kind != Kind::kLegacy && !(flags & CU_STREAM_NON_BLOCKING); }
};
using StreamPtr = std::shared_ptr<Stream>;

// All below REQUIRE TheLock.

// The meaning of a CUstream argument: a stream of the program, or a default stream of the current context.
struct StreamOrError {
  StreamPtr stream;
  CUresult error = CUDA_SUCCESS;
};
StreamOrError ResolveStream(CUstream handle);
StreamPtr NewStream(Context& context, unsigned flags, int priority);
inline CUstream HandleOf(const StreamPtr& stream) { return reinterpret_cast<CUstream>(stream.get()); }
std::vector<StreamPtr> BlockingStreamsOf(Context& context);

struct Work {
  CUgraphNodeType type;
  std::vector<Step> steps;
  std::vector<CommandPtr> after = {};
};
// `command`, where given, becomes the command, or null when the work was captured. Blocks while the stream is
// full, or while a call that waits for the context blocks launches (rules.h).
CUresult Submit(Lock& lock, Stream& stream, Work work, CommandPtr* command = nullptr);
// Resolves, submits.
CUresult SubmitTo(CUstream handle, Work work);
// Submits and waits: what a synchronous call does.
CUresult SubmitAndAwait(Lock& lock, CUstream handle, Work work);

}  // namespace standin
