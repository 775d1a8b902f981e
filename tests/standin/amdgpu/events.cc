#include "events.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace standin_amdgpu {
namespace {

constexpr uint32_t kForever = 0xffffffff;
// What KFD answers where a program could map its page of slots. ROCr brings a page of its own, and needs only
// that the answer is not 0.
constexpr uint64_t kPageOfSlots = uint64_t{2} << 62;

// The age that the program has seen last, at the head of a signal's data since KFD 1.14. 0: it does not care.
uint64_t LastAge(const kfd_event_data& data) {
  uint64_t age;
  std::memcpy(&age, &data, sizeof age);
  return age;
}
void SetLastAge(kfd_event_data& data, uint64_t age) { std::memcpy(&data, &age, sizeof age); }

}  // namespace

Events::Event* Events::Find(uint32_t id) {
  auto found = events_.find(id);
  return found == events_.end() ? nullptr : &found->second;
}

int Events::Create(kfd_ioctl_create_event_args& args) {
  std::lock_guard lock(mutex_);
  // The smallest free number, also the slot in the page. 0 is none.
  uint32_t id = 1;
  while (events_.count(id) != 0) ++id;
  if (id >= KFD_SIGNAL_EVENT_LIMIT) return ENOSPC;
  const bool is_signal =
      args.event_type == KFD_IOC_EVENT_SIGNAL || args.event_type == KFD_IOC_EVENT_DEBUG_EVENT;
  events_[id] = {.resets_itself = args.auto_reset != 0, .is_signal = is_signal};
  args.event_id = args.event_trigger_data = id;
  if (is_signal) {
    args.event_page_offset = kPageOfSlots;
    args.event_slot_index = id;
  }
  return 0;
}

int Events::Destroy(uint32_t id) {
  std::lock_guard lock(mutex_);
  const bool existed = events_.erase(id) != 0;
  changed_.notify_all();
  return existed ? 0 : EINVAL;
}

int Events::Set(uint32_t id) {
  std::lock_guard lock(mutex_);
  Event* event = Find(id);
  if (event == nullptr) return EINVAL;
  // All its waiters are woken. Without any, the next waiter does not wait.
  event->set = !event->resets_itself || event->waiters == 0;
  ++event->age;
  changed_.notify_all();
  return 0;
}

int Events::Reset(uint32_t id) {
  std::lock_guard lock(mutex_);
  Event* event = Find(id);
  if (event == nullptr) return EINVAL;
  event->set = false;
  return 0;
}

Events::Waited Events::Enter(const kfd_event_data& data) {
  Event& event = *Find(data.event_id);
  const uint64_t seen = event.is_signal ? LastAge(data) : 0;
  const Waited waited{data.event_id, event.set || (seen != 0 && seen != event.age), event.age};
  if (event.resets_itself) event.set = false;
  ++event.waiters;
  return waited;
}

int Events::CountHappened(const std::vector<Waited>& all) {
  int count = 0;
  for (const Waited& waited : all) {
    const Event* event = Find(waited.id);
    if (event == nullptr) return -1;
    count += waited.happened || event->age != waited.age;
  }
  return count;
}

void Events::Leave(const std::vector<Waited>& all, std::span<kfd_event_data> data) {
  for (size_t i = 0; i < all.size(); ++i) {
    Event* event = Find(all[i].id);
    if (event == nullptr) continue;
    --event->waiters;
    const bool happened = all[i].happened || event->age != all[i].age;
    if (happened && event->is_signal && LastAge(data[i]) != 0) SetLastAge(data[i], event->age);
  }
}

int Events::Wait(kfd_ioctl_wait_events_args& args) {
  const std::span data(reinterpret_cast<kfd_event_data*>(args.events_ptr), args.num_events);
  const int enough = args.wait_for_all != 0 ? static_cast<int>(args.num_events) : 1;
  std::unique_lock lock(mutex_);
  if (!std::ranges::all_of(data,
                           [this](const kfd_event_data& one) { return Find(one.event_id) != nullptr; })) {
    return EINVAL;
  }
  std::vector<Waited> all;
  for (const kfd_event_data& one : data) all.push_back(Enter(one));
  int happened = 0;
  const auto done = [&] { return (happened = CountHappened(all)) < 0 || happened >= enough; };
  if (args.timeout == kForever) {
    changed_.wait(lock, done);
  } else {
    changed_.wait_for(lock, std::chrono::milliseconds(args.timeout), done);
  }
  args.wait_result = happened < 0         ? KFD_IOC_WAIT_RESULT_FAIL
                     : happened >= enough ? KFD_IOC_WAIT_RESULT_COMPLETE
                                          : KFD_IOC_WAIT_RESULT_TIMEOUT;
  Leave(all, data);
  return args.wait_result == KFD_IOC_WAIT_RESULT_FAIL ? EIO : 0;
}

}  // namespace standin_amdgpu
