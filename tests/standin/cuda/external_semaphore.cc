// External semaphores: a counter that streams increase and wait for. Imported ones all start at 0, and none
// is shared with another process.
#include <memory>
#include <unordered_map>

#include "context.h"
#include "driver.h"
#include "stream.h"

namespace standin {
namespace {

struct Semaphore {
  uint64_t value = 0;
};

std::unordered_map<CUexternalSemaphore, std::shared_ptr<Semaphore>>& Semaphores() {
  static auto* const semaphores = new std::unordered_map<CUexternalSemaphore, std::shared_ptr<Semaphore>>;
  return *semaphores;
}

}  // namespace

CUresult cuImportExternalSemaphore(CUexternalSemaphore* out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC*) {
  Lock lock;
  auto semaphore = std::make_shared<Semaphore>();
  *out = reinterpret_cast<CUexternalSemaphore>(semaphore.get());
  Semaphores()[*out] = std::move(semaphore);
  return CUDA_SUCCESS;
}

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore) {
  Lock lock;
  return Semaphores().erase(semaphore) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                         const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters,
                                         unsigned int count, CUstream stream) {
  std::vector<Step> steps;
  {
    Lock lock;
    for (unsigned i = 0; i < count; ++i) {
      const auto found = Semaphores().find(handles[i]);
      if (found == Semaphores().end()) return CUDA_ERROR_INVALID_HANDLE;
      const auto value = parameters[i].params.fence.value;
      steps.push_back(
          {Step::Kind::kAction, [semaphore = found->second, value] { semaphore->value = value; }});
    }
  }
  return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, std::move(steps)});
}

CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore* handles,
                                       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters,
                                       unsigned int count, CUstream stream) {
  std::vector<Step> steps;
  {
    Lock lock;
    for (unsigned i = 0; i < count; ++i) {
      const auto found = Semaphores().find(handles[i]);
      if (found == Semaphores().end()) return CUDA_ERROR_INVALID_HANDLE;
      const auto value = parameters[i].params.fence.value;
      steps.push_back({Step::Kind::kWait, nullptr,
                       [semaphore = found->second, value] { return semaphore->value >= value; }});
    }
  }
  return SubmitTo(stream, {CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT, std::move(steps)});
}

}  // namespace standin
