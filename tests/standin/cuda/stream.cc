#include "stream.h"

#include <algorithm>
#include <unordered_map>

#include "capture.h"
#include "driver.h"
#include "entry.h"
#include "rules.h"
#include "standin.h"

namespace standin {
namespace {

bool immediate = false;  // commands that wait for nothing are done by the thread that submits them
uint64_t streams_made = 0;

std::unordered_map<CUstream, StreamPtr>& Streams() {
  static auto* const streams = new std::unordered_map<CUstream, StreamPtr>;
  return *streams;
}

StreamPtr PerThreadStream(Context& context) {
  StreamPtr& stream = context.per_thread[std::this_thread::get_id()];
  if (stream == nullptr) stream = std::make_shared<Stream>(context, Stream::Kind::kPerThread, 0, 0);
  return stream;
}

// The implicit ordering between the legacy default stream and the blocking streams of its context.
void OrderWithDefaultStream(Stream& stream, std::vector<CommandPtr>& after) {
  if (stream.kind == Stream::Kind::kLegacy) {
    for (const StreamPtr& other : BlockingStreamsOf(*stream.context)) {
      if (other->last != nullptr) after.push_back(other->last);
    }
  } else if (stream.blocking() && stream.context->legacy->last != nullptr) {
    after.push_back(stream.context->legacy->last);
  }
}

bool CanRunAtOnce(const Stream& stream, const Command& command) {
  if (!immediate || !stream.queue.empty()) return false;
  for (const CommandPtr& other : command.after) {
    if (!other->done) return false;
  }
  return std::all_of(command.steps.begin(), command.steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::kKernel || step.kind == Step::Kind::kAction ||
           (step.kind == Step::Kind::kWait && step.ready());
  });
}

void RunAtOnce(Command& command) {
  for (const Step& step : command.steps) {
    if (step.act) step.act();
  }
  command.done = true;
  command.finished = Clock::now();
}

CUresult CreateStream(CUstream* out, unsigned flags, int priority) {
  Lock lock;
  if (out == nullptr || (flags & ~CU_STREAM_NON_BLOCKING)) return CUDA_ERROR_INVALID_VALUE;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *out = HandleOf(NewStream(*context, flags, priority));
  return CUDA_SUCCESS;
}

// Waits until the stream has room, and no call blocks launches on its context. While it waits for one, the
// other may change again.
CUresult AwaitRoom(Lock& lock, Stream& stream, CUgraphNodeType type) {
  static const bool ends = Obeys("stream_depth");
  Context& context = *stream.context;
  const auto full = [&] { return ends && stream.queue.size() >= kStreamCommands; };
  const auto kept_out = [&] {
    return type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && context.waiting_for_all.inside != 0;
  };
  while ((full() || kept_out()) && !context.lost && !context.destroyed && stream.capture == nullptr) {
    if (kept_out()) {
      context.waiting_for_all.AwaitThose(lock);
      continue;
    }
    const Blocked of_stream(stream.waiting_for_room), of_context(context.waiting_for_room);
    CommandsDone().wait(lock, [&] { return !full() || context.lost || context.destroyed; });
  }
  return context.destroyed ? CUDA_ERROR_CONTEXT_IS_DESTROYED : context.lost;
}

// What cuStreamSetAttribute waits for: launches on any stream of the context that wait for room, and calls
// that wait for all of its work.
CUresult AwaitBlockedCalls(CUstream handle) {
  static const bool blocks = Obeys("full_stream_blocks");
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (blocks) stream->context->waiting_for_room.AwaitThose(lock);
  stream->context->waiting_for_all.AwaitThose(lock);
  return CUDA_SUCCESS;
}

// While a blocking stream captures, a call on the legacy stream would make an implicit dependency.
template <typename Say>
CUresult Describe(CUstream handle, Say say) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (const CUresult implicit = RefuseLegacyStreamDuringCapture(*stream)) return implicit;
  say(*stream);
  return CUDA_SUCCESS;
}

}  // namespace

Stream::Stream(Context& its_context, Kind its_kind, unsigned its_flags, int its_priority)
    : context(&its_context), kind(its_kind), flags(its_flags), priority(its_priority), id(++streams_made) {}

StreamPtr NewStream(Context& context, unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(context, Stream::Kind::kOrdinary, flags,
                                         std::clamp(priority, kGreatestPriority, kLeastPriority));
  context.streams.insert(stream);
  Streams()[HandleOf(stream)] = stream;
  return stream;
}

std::vector<StreamPtr> BlockingStreamsOf(Context& context) {
  std::vector<StreamPtr> blocking;
  for (const StreamPtr& stream : context.streams) {
    if (stream->blocking()) blocking.push_back(stream);
  }
  for (const auto& [thread, stream] : context.per_thread) blocking.push_back(stream);
  return blocking;
}

StreamOrError ResolveStream(CUstream handle) {
  if (handle == nullptr) handle = null_stream_is_per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    Context* context = CurrentContext();
    if (context == nullptr) return {nullptr, CUDA_ERROR_INVALID_CONTEXT};
    return {handle == CU_STREAM_LEGACY ? context->legacy : PerThreadStream(*context)};
  }
  const auto found = Streams().find(handle);
  if (found == Streams().end()) return {nullptr, CUDA_ERROR_INVALID_HANDLE};
  if (found->second->context->destroyed) return {nullptr, CUDA_ERROR_CONTEXT_IS_DESTROYED};
  return {found->second};
}

CUresult Submit(Lock& lock, Stream& stream, Work work, CommandPtr* out) {
  if (out != nullptr) *out = nullptr;
  if (stream.context->lost) return stream.context->lost;
  if (stream.capture == nullptr) {
    if (const CUresult gone = AwaitRoom(lock, stream, work.type)) return gone;
  }
  if (stream.capture != nullptr) return AddToCapture(stream, std::move(work));
  if (const CUresult implicit = RefuseLegacyStreamDuringCapture(stream)) return implicit;
  auto command = std::make_shared<Command>();
  command->context = stream.context;
  command->steps = std::move(work.steps);
  command->after = std::move(work.after);
  OrderWithDefaultStream(stream, command->after);
  if (out != nullptr) *out = command;
  if (CanRunAtOnce(stream, *command)) {
    RunAtOnce(*command);
  } else {
    stream.context->device->Enqueue(stream, std::move(command));
  }
  return CUDA_SUCCESS;
}

CUresult SubmitTo(CUstream handle, Work work) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  return error ? error : Submit(lock, *stream, std::move(work));
}

CUresult SubmitAndAwait(Lock& lock, CUstream handle, Work work) {
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->capture != nullptr) return RefuseOnCapturingStream(*stream);
  CommandPtr command;
  if (const CUresult result = Submit(lock, *stream, std::move(work), &command)) return result;
  return AwaitCommand(lock, command);
}

CUresult cuStreamCreate(CUstream* out, unsigned int flags) {
  return CreateStream(out, flags, kLeastPriority);
}
CUresult cuStreamCreateWithPriority(CUstream* out, unsigned int flags, int priority) {
  return CreateStream(out, flags, priority);
}

// Submitted work still runs. Only the handle is destroyed.
CUresult cuStreamDestroy_v2(CUstream handle) {
  Lock lock;
  const auto found = Streams().find(handle);
  if (found == Streams().end()) return CUDA_ERROR_INVALID_HANDLE;
  const StreamPtr stream = found->second;
  if (stream->capture != nullptr) AbandonCapture(*stream);
  stream->context->streams.erase(stream);
  Streams().erase(found);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream handle) { return standin::cuStreamDestroy_v2(handle); }

CUresult cuStreamQuery(CUstream handle) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  static const bool blocks = Obeys("full_stream_blocks");
  if (blocks) stream->waiting_for_room.AwaitThose(lock);
  if (stream->capture != nullptr) return RefuseOnCapturingStream(*stream);
  if (const CUresult implicit = RefuseLegacyStreamDuringCapture(*stream)) return implicit;
  if (stream->context->lost) return stream->context->lost;
  std::vector<CommandPtr> last{stream->last};
  // The legacy stream stands for its own work and that of the blocking streams.
  if (stream->kind == Stream::Kind::kLegacy) OrderWithDefaultStream(*stream, last);
  const bool idle =
      std::all_of(last.begin(), last.end(), [](const auto& c) { return c == nullptr || c->done; });
  return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream handle) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->capture != nullptr) return RefuseOnCapturingStream(*stream);
  if (const CUresult implicit = RefuseLegacyStreamDuringCapture(*stream)) return implicit;
  std::vector<CommandPtr> last{stream->last};
  if (stream->kind == Stream::Kind::kLegacy) OrderWithDefaultStream(*stream, last);
  for (const CommandPtr& command : last) {
    if (command != nullptr) AwaitCommand(lock, command);
  }
  return stream->context->lost;
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return Describe(handle, [&](const Stream& stream) { *priority = stream.priority; });
}
CUresult cuStreamGetFlags(CUstream handle, unsigned int* flags) {
  return Describe(handle, [&](const Stream& stream) { *flags = stream.flags; });
}
CUresult cuStreamGetId(CUstream handle, unsigned long long* id) {
  return Describe(handle, [&](const Stream& stream) { *id = stream.id; });
}
CUresult cuStreamGetCtx(CUstream handle, CUcontext* context) {
  return Describe(handle, [&](const Stream& stream) { *context = HandleOf(stream.context); });
}
CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  return Describe(handle, [&](const Stream& stream) {
    for (int i = 0; i < DeviceCount(); ++i) {
      if (DeviceAt(i) == stream.context->device) *device = i;
    }
  });
}
CUresult cuStreamGetAttribute(CUstream handle, CUstreamAttrID attribute, CUstreamAttrValue* value) {
  return Describe(handle, [&](const Stream& stream) {
    *value = {};
    if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY) value->priority = stream.priority;
  });
}
CUresult cuStreamSetAttribute(CUstream handle, CUstreamAttrID attribute, const CUstreamAttrValue* value) {
  if (const CUresult error = AwaitBlockedCalls(handle)) return error;
  return Describe(handle, [&](Stream& stream) {
    if (attribute == CU_STREAM_ATTRIBUTE_PRIORITY)
      stream.priority = std::clamp(value->priority, kGreatestPriority, kLeastPriority);
  });
}
CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  int priority = 0;
  const CUresult result = Describe(from, [&](const Stream& stream) { priority = stream.priority; });
  return result ? result : Describe(to, [&](Stream& stream) { stream.priority = priority; });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SubmitTo(handle, {CU_GRAPH_NODE_TYPE_HOST, {{Step::Kind::kHost, [=] { function(data); }}}});
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback callback, void* data, unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->capture != nullptr) return RefuseOnCapturingStream(*stream);
  const auto act = [=] { callback(handle, CUDA_SUCCESS, data); };
  return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_HOST, {{Step::Kind::kHost, act}}});
}

CUresult cuStreamAttachMemAsync(CUstream handle, CUdeviceptr, size_t, unsigned int) {
  Lock lock;
  const auto [stream, error] = ResolveStream(handle);
  if (error) return error;
  if (stream->capture != nullptr) return RefuseOnCapturingStream(*stream);
  return Submit(lock, *stream, {CU_GRAPH_NODE_TYPE_EMPTY, {}});
}

}  // namespace standin

int standin_stream_priority(void* handle) {
  standin::Lock lock;
  const auto [stream, error] = standin::ResolveStream(static_cast<CUstream>(handle));
  return error ? 99 : stream->priority;
}

void standin_set_immediate(int on) { standin::immediate = on != 0; }
