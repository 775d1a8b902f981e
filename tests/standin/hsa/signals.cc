#include "signals.h"

#include <hsa/hsa_ext_amd.h>
#include <pthread.h>

#include <algorithm>
#include <list>
#include <new>
#include <thread>

#include "clock.h"
#include "entry.h"
#include "standin_hsa.h"

namespace standin_hsa {
namespace {

struct Handler {
  hsa_signal_t signal;
  hsa_signal_condition_t condition;
  hsa_signal_value_t compared_with;
  hsa_amd_signal_handler function;
  void* argument;
};

// The thread that calls the program back; it and its list live as long as the process.
class Handlers {
 public:
  void Add(const Handler& handler) {
    {
      std::lock_guard guard(Signals().lock);
      waiting_.push_back(handler);
      if (thread_ == std::thread::id()) {
        std::thread thread([this] { Run(); });
        thread_ = thread.get_id();
        thread.detach();
      }
    }
    Signals().changed.notify_all();
  }
  void Start() {
    {
      std::lock_guard guard(Signals().lock);
      stopped_ = false;
    }
    Signals().changed.notify_all();
  }
  void Stop() {
    std::unique_lock lock(Signals().lock);
    stopped_ = true;
    // A handler that stops them need not wait for itself.
    if (std::this_thread::get_id() == thread_) return;
    Signals().changed.wait(lock, [this] { return !running_; });
  }
  void AwaitIdle() {
    std::unique_lock lock(Signals().lock);
    auto is_idle = [this] { return !running_ && std::none_of(waiting_.begin(), waiting_.end(), IsDue); };
    Signals().changed.wait(lock, is_idle);
  }

 private:
  static bool IsDue(const Handler& handler) {
    return Holds(handler.condition, Load(handler.signal), handler.compared_with);
  }
  void Run() {
    for (;;) {
      std::list<Handler> due;
      Await([&] {
        if (stopped_) return false;
        for (auto it = waiting_.begin(); it != waiting_.end();) {
          auto next = std::next(it);
          if (IsDue(*it)) due.splice(due.end(), waiting_, it);
          it = next;
        }
        running_ = !due.empty();
        return running_;
      });
      for (const Handler& handler : due) {
        if (handler.function(Load(handler.signal), handler.argument)) Add(handler);
      }
      {
        std::lock_guard guard(Signals().lock);
        running_ = false;
      }
      Signals().changed.notify_all();
    }
  }

  // Under Signals().lock.
  std::list<Handler> waiting_;
  std::thread::id thread_;
  bool running_ = false;
  bool stopped_ = false;
};

Handlers& AllHandlers() {
  static auto* const handlers = new Handlers;
  return *handlers;
}

std::atomic_ref<int64_t> Value(hsa_signal_t signal) {
  return std::atomic_ref<int64_t>(const_cast<int64_t&>(From(signal)->value));
}

template <typename Change>
void ChangeSignal(hsa_signal_t signal, Change change) {
  {
    std::lock_guard guard(Signals().lock);
    change(Value(signal));
  }
  Signals().changed.notify_all();
}

}  // namespace

// A child of fork has none of the threads that may hold these just then. It can ring a doorbell, and nothing
// comes of it, as with a real queue.
SignalState& Signals() {
  static auto* const state = [] {
    pthread_atfork(nullptr, nullptr, [] { new (&Signals()) SignalState; });
    return new SignalState;
  }();
  return *state;
}

void StartHandlers() { AllHandlers().Start(); }
void StopHandlers() { AllHandlers().Stop(); }

int64_t Load(hsa_signal_t signal) { return Value(signal).load(std::memory_order_acquire); }

bool Await(const std::function<bool()>& met, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(Signals().lock);
  if (deadline != kForEver) return Signals().changed.wait_until(lock, deadline, met);
  Signals().changed.wait(lock, met);
  return true;
}

void AwaitByLooking(const std::function<bool()>& met) {
  std::unique_lock lock(Signals().lock);
  while (!met()) Signals().changed.wait_for(lock, std::chrono::milliseconds(1));
}

bool Holds(hsa_signal_condition_t condition, int64_t value, int64_t compared_with) {
  switch (condition) {
    case HSA_SIGNAL_CONDITION_EQ:
      return value == compared_with;
    case HSA_SIGNAL_CONDITION_NE:
      return value != compared_with;
    case HSA_SIGNAL_CONDITION_LT:
      return value < compared_with;
    default:
      return value >= compared_with;
  }
}

void Complete(hsa_signal_t signal, uint64_t begun, uint64_t ended) {
  if (signal.handle == 0) return;
  From(signal)->start_ts = begun;
  From(signal)->end_ts = ended;
  ChangeSignal(signal, [](auto value) { value.fetch_sub(1, std::memory_order_release); });
}

}  // namespace standin_hsa

using namespace standin_hsa;

void standin_hsa_await_handlers() { AllHandlers().AwaitIdle(); }

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t, const hsa_agent_t*,
                               hsa_signal_t* created) {
  HSA_ENTRY();
  auto* signal = new (std::nothrow) amd_signal_t{};
  if (signal == nullptr) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  signal->kind = AMD_SIGNAL_KIND_USER;
  signal->value = value;
  created->handle = reinterpret_cast<uint64_t>(signal);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t* consumers,
                                   uint64_t, hsa_signal_t* created) {
  return hsa_signal_create(value, count, consumers, created);
}
hsa_status_t hsa_signal_destroy(hsa_signal_t signal) {
  HSA_ENTRY();
  if (signal.handle == 0) return HSA_STATUS_ERROR_INVALID_SIGNAL;
  delete From(signal);
  return HSA_STATUS_SUCCESS;
}
hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) { return Load(signal); }
hsa_signal_value_t hsa_signal_load_scacquire(hsa_signal_t signal) { return Load(signal); }
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  ChangeSignal(signal, [=](auto current) { current.store(value, std::memory_order_release); });
}
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) {
  hsa_signal_store_relaxed(signal, value);
}
void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  Value(signal).store(value, std::memory_order_release);
}
void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  ChangeSignal(signal, [=](auto current) { current.fetch_add(value, std::memory_order_acq_rel); });
}
void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  ChangeSignal(signal, [=](auto current) { current.fetch_sub(value, std::memory_order_acq_rel); });
}
hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t compared_with, uint64_t timeout,
                                             hsa_wait_state_t) {
  auto deadline = kForEver;
  // A tick is a nanosecond (hsa_system_get_info); an hour is as good as no limit.
  if (timeout < uint64_t{3600} * 1'000'000'000) {
    deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout);
  }
  Await([&] { return Holds(condition, Load(signal), compared_with); }, deadline);
  return Load(signal);
}
hsa_signal_value_t hsa_signal_wait_relaxed(hsa_signal_t signal, hsa_signal_condition_t condition,
                                           hsa_signal_value_t compared_with, uint64_t timeout,
                                           hsa_wait_state_t state) {
  return hsa_signal_wait_scacquire(signal, condition, compared_with, timeout, state);
}
hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t** pointer) {
  HSA_ENTRY();
  *pointer = &From(signal)->value;
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                          hsa_signal_value_t compared_with, hsa_amd_signal_handler function,
                                          void* argument) {
  HSA_ENTRY();
  AllHandlers().Add({signal, condition, compared_with, function, argument});
  return HSA_STATUS_SUCCESS;
}
