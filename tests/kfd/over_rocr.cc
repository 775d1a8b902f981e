// Lets tests that were written for the fake KFD and the software HSA agent drive the stand-in beneath AMD's
// own ROCr.
#include "fake_kfd.h"
#include "standin_amdgpu.h"
#include "standin_hsa.h"

namespace {

constexpr unsigned kUpdateQueue = 7;

}  // namespace

uint32_t fake_kfd_queues() { return standin_amdgpu_queues(); }
uint32_t fake_kfd_active_queues() { return standin_amdgpu_active_queues(); }
void fake_kfd_fail_update(int nth, int error) {
  standin_amdgpu_fail(kUpdateQueue, nth, 1, error, kStandinAmdgpuRefuse);
}
size_t fake_kfd_take_record(char* text, size_t size) { return standin_amdgpu_take_record(text, size); }
void standin_hsa_set_kernel(const char* kernel, standin_hsa_kernel_function function) {
  standin_amdgpu_set_kernel(kernel, function);
}
