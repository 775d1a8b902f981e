#include "device.h"

#include <sys/prctl.h>

#include <algorithm>
#include <cstdlib>

#include "context.h"
#include "entry.h"
#include "standin.h"
#include "stream.h"

namespace standin {
namespace {

// How soon a waiting step sees its word, and how soon a kernel starts after another process gives the device
// up. STANDIN_CUDA_POLL_US makes it longer in tests with many processes, where polling would keep the
// processors busy.
std::chrono::microseconds PollEvery() {
  const char* us = std::getenv("STANDIN_CUDA_POLL_US");
  return std::chrono::microseconds(us == nullptr ? 20 : std::max(1, std::atoi(us)));
}
const std::chrono::microseconds kPoll = PollEvery();

template <typename T>
T& Immortal() {  // devices run until the process is gone, whatever has been destroyed by then
  static T* const object = new T;
  return *object;
}

}  // namespace

std::mutex& TheLock() { return Immortal<std::mutex>(); }
std::condition_variable& CommandsDone() { return Immortal<std::condition_variable>(); }

Device::Device(int ordinal) : ordinal_(ordinal), turns_(ordinal) {
  std::thread([this] { Run(); }).detach();
  std::thread([this] { RunHostFunctions(); }).detach();
}

void Device::Enqueue(Stream& stream, CommandPtr command) {
  if (stream.queue.empty()) active_.push_back(stream.shared_from_this());
  stream.queue.push_back(command);
  stream.last = std::move(command);
  turns_.SetRunnable(true);
  changed_.notify_one();
}

std::vector<CommandPtr> Device::LastCommandsOf(const Context& context) const {
  std::vector<CommandPtr> last;
  for (const auto& stream : active_) {
    // Work of a green context is work of the primary one.
    if (stream->context == &context || stream->context->primary_of_green == &context)
      last.push_back(stream->queue.back());
  }
  return last;
}

size_t Device::pending() const {
  size_t n = 0;
  for (const auto& stream : active_) n += stream->queue.size();
  return n;
}

void Device::Run() {
  prctl(PR_SET_TIMERSLACK, 1);
  Lock lock;
  for (;;) {
    bool progress = AdvanceStreams();
    progress |= DriveEngine(Clock::now());
    std::erase_if(active_, [](const auto& stream) { return stream->queue.empty(); });
    turns_.SetRunnable(!active_.empty());
    if (progress) continue;
    Sleep(lock);
  }
}

void Device::Sleep(Lock& lock) {
  const auto now = Clock::now();
  auto until = Clock::time_point::max();
  if (something_waits_) until = now + kPoll;
  if (on_engine_ != nullptr) {
    if (running_) until = std::min(until, resumed_at_ + left_);
    if (!running_ || turns_.shared()) until = std::min(until, now + kPoll);
  }
  if (until == Clock::time_point::max()) {
    changed_.wait(lock);
  } else {
    changed_.wait_until(lock, until);
  }
}

bool Device::AdvanceStreams() {
  something_waits_ = false;
  bool progress = false;
  // By index: what a step does may add streams.
  for (size_t i = 0; i < active_.size(); ++i) {
    const std::shared_ptr<Stream> stream = active_[i];
    while (!stream->queue.empty() && Advance(*stream)) progress = true;
  }
  return progress;
}

// Does the next step of the stream's first command if that is possible now.
bool Device::Advance(Stream& stream) {
  Command& command = *stream.queue.front();
  if (command.with_host_thread || on_engine_.get() == &stream) return false;
  if (command.context->lost != CUDA_SUCCESS) {
    FinishCommand(stream);
    return true;
  }
  if (std::any_of(command.after.begin(), command.after.end(),
                  [](const auto& other) { return !other->done; })) {
    // It may wait for another device, which does not wake this one.
    something_waits_ = true;
    return false;
  }
  if (command.next_step == command.steps.size()) {
    FinishCommand(stream);
    return true;
  }
  Step& step = command.steps[command.next_step];
  switch (step.kind) {
    case Step::Kind::kKernel:
      if (command.ready_since == 0) command.ready_since = ++kernels_readied_;
      return false;
    case Step::Kind::kAction:
      step.act();
      ++command.next_step;
      return true;
    case Step::Kind::kWait:
      if (!step.ready()) {
        something_waits_ = true;
        return false;
      }
      ++command.next_step;
      return true;
    case Step::Kind::kHost:
      command.with_host_thread = true;
      host_queue_.push_back(stream.shared_from_this());
      host_changed_.notify_one();
      return false;
  }
  return false;
}

// Puts the kernel on the engine that has been ready for longest, and takes it off when its time has passed.
bool Device::DriveEngine(Clock::time_point now) {
  if (on_engine_ == nullptr) {
    for (const auto& stream : active_) {
      if (stream->queue.empty() || stream->queue.front()->ready_since == 0) continue;
      if (on_engine_ == nullptr ||
          stream->queue.front()->ready_since < on_engine_->queue.front()->ready_since) {
        on_engine_ = stream;
      }
    }
    if (on_engine_ == nullptr) {
      turns_.Leave();
      return false;
    }
    const Command& command = *on_engine_->queue.front();
    left_ = command.steps[command.next_step].duration;
    running_ = false;
  }
  Command& command = *on_engine_->queue.front();
  const bool lost = command.context->lost != CUDA_SUCCESS;
  const bool ours = turns_.Want(now);
  if (!running_ && ours) {
    running_ = true;
    resumed_at_ = now;
  }
  if (running_ && (now - resumed_at_ >= left_ || !ours || lost)) {
    const auto ran = std::min<std::chrono::nanoseconds>(now - resumed_at_, left_);
    busy_ += ran;
    left_ -= ran;
    running_ = false;
    if (left_ > std::chrono::nanoseconds::zero() && !lost) return false;  // interrupted
  } else if (!lost) {
    return false;
  }
  command.ready_since = 0;
  const std::shared_ptr<Stream> stream = std::move(on_engine_);
  on_engine_ = nullptr;
  if (!lost) {
    if (const auto& act = command.steps[command.next_step].act) act();
    ++command.next_step;
  }
  return true;
}

void Device::FinishCommand(Stream& stream) {
  const CommandPtr command = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (stream.last == command) stream.last = nullptr;
  command->done = true;
  command->finished = Clock::now();
  command->after.clear();
  command->steps.clear();
  CommandsDone().notify_all();
}

void Device::RunHostFunctions() {
  in_host_function = true;
  Lock lock;
  for (;;) {
    host_changed_.wait(lock, [this] { return !host_queue_.empty(); });
    const std::shared_ptr<Stream> stream = std::move(host_queue_.front());
    host_queue_.pop_front();
    const CommandPtr command = stream->queue.front();
    const std::function<void()> act = command->steps[command->next_step].act;
    lock.unlock();
    act();
    lock.lock();
    ++command->next_step;
    command->with_host_thread = false;
    changed_.notify_one();
  }
}

}  // namespace standin

extern "C" {

void standin_set_timeslice(int ordinal, uint64_t us) {
  standin::Lock lock;
  if (standin::Device* device = standin::DeviceAt(ordinal))
    device->turns().SetTimeslice(std::chrono::microseconds(us));
}

uint64_t standin_timeslice(int ordinal) {
  standin::Lock lock;
  standin::Device* device = standin::DeviceAt(ordinal);
  return device ? device->turns().timeslice().count() : 0;
}

void standin_set_scheduled(int ordinal, int on) {
  standin::Lock lock;
  if (standin::Device* device = standin::DeviceAt(ordinal)) {
    device->turns().SetScheduled(on != 0);
    device->LookAtTurns();
    device->Wake();
  }
}

int standin_scheduled(int ordinal) {
  standin::Lock lock;
  standin::Device* device = standin::DeviceAt(ordinal);
  return device && device->turns().scheduled() ? 1 : 0;
}

uint64_t standin_busy_ns(int ordinal) {
  standin::Lock lock;
  const standin::Device* device = standin::DeviceAt(ordinal);
  return device ? device->busy().count() : 0;
}

uint64_t standin_pending(int ordinal) {
  standin::Lock lock;
  const standin::Device* device = standin::DeviceAt(ordinal);
  return device ? device->pending() : 0;
}
}
