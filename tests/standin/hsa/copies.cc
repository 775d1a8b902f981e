#include "copies.h"

#include <hsa/hsa_ext_amd.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <thread>
#include <vector>

#include "clock.h"
#include "entry.h"
#include "signals.h"

namespace standin_hsa {
namespace {

struct Copy {
  std::function<void()> run;
  std::vector<hsa_signal_t> after;
  hsa_signal_t completion;
};

class Engine {
 public:
  void Submit(Copy copy) {
    {
      std::lock_guard guard(Signals().lock);
      waiting_.push_back(std::move(copy));
      if (!started_) std::thread([this] { Run(); }).detach();
      started_ = true;
    }
    Signals().changed.notify_all();
  }

 private:
  void Run() {
    for (;;) {
      std::list<Copy> next;
      Await([&] {
        auto ready = std::find_if(waiting_.begin(), waiting_.end(), [](const Copy& copy) {
          return std::all_of(copy.after.begin(), copy.after.end(),
                             [](hsa_signal_t signal) { return Load(signal) == 0; });
        });
        if (ready != waiting_.end()) next.splice(next.end(), waiting_, ready);
        return !next.empty();
      });
      const uint64_t begun = Now();
      next.front().run();
      Complete(next.front().completion, begun, Now());
    }
  }

  std::list<Copy> waiting_;  // under Signals().lock
  bool started_ = false;
};

}  // namespace

void SubmitCopy(std::function<void()> copy, uint32_t count, const hsa_signal_t* after,
                hsa_signal_t completion) {
  static auto* const engine = new Engine;
  engine->Submit({std::move(copy), {after, after + count}, completion});
}

}  // namespace standin_hsa

using namespace standin_hsa;

hsa_status_t hsa_memory_copy(void* to, const void* from, size_t size) {
  HSA_ENTRY();
  std::memmove(to, from, size);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_memory_async_copy(void* to, hsa_agent_t, const void* from, hsa_agent_t, size_t size,
                                       uint32_t count, const hsa_signal_t* after, hsa_signal_t completion) {
  HSA_ENTRY();
  SubmitCopy([=] { std::memmove(to, from, size); }, count, after, completion);
  return HSA_STATUS_SUCCESS;
}
hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t* to, const hsa_dim3_t* to_offset,
                                            const hsa_pitched_ptr_t* from, const hsa_dim3_t* from_offset,
                                            const hsa_dim3_t* range, hsa_agent_t, hsa_amd_copy_direction_t,
                                            uint32_t count, const hsa_signal_t* after,
                                            hsa_signal_t completion) {
  HSA_ENTRY();
  auto at = [](const hsa_pitched_ptr_t& block, const hsa_dim3_t& offset, uint32_t y, uint32_t z) {
    return static_cast<char*>(block.base) + offset.x + (offset.y + y) * block.pitch +
           (offset.z + z) * block.slice;
  };
  auto copy = [at, to = *to, from = *from, to_offset = *to_offset, from_offset = *from_offset,
               range = *range] {
    for (uint32_t z = 0; z < range.z; ++z) {
      for (uint32_t y = 0; y < range.y; ++y)
        std::memmove(at(to, to_offset, y, z), at(from, from_offset, y, z), range.x);
    }
  };
  SubmitCopy(copy, count, after, completion);
  return HSA_STATUS_SUCCESS;
}
