// A HIP program over the software HSA agent, for hip_processes.py: kernels of a millisecond on one stream, as
// fast as it may launch them, for as long as it is let; writes "<milliseconds> <kernels that have begun>"
// every 10 ms. Knows nothing of XSched.
#include <stdio.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "hip_api.h"
#include "kernels.h"
#include "standin_hsa.h"

namespace {

void Check(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  printf("failed: %s: %d\n", what, error);
  fflush(stdout);
  _exit(1);
}

void WriteProgress() {
  using namespace std::chrono;
  for (;;) {
    const duration<double, std::milli> now = steady_clock::now().time_since_epoch();
    printf("%.3f %lu\n", now.count(), standin_hsa_dispatches("spin_us"));
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  hipStream_t stream = nullptr;
  Check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  // On a thread of its own: a thread that launches on a held stream waits.
  std::thread(WriteProgress).detach();
  for (int us = 1000;;) {
    void* arguments[] = {&us};
    for (int i = 0; i < 32; ++i)
      Check(hipLaunchKernel(kKernelSpinUs, dim3(1), dim3(64), arguments, 0, stream), "hipLaunchKernel");
    Check(hipStreamSynchronize(stream), "hipStreamSynchronize");
  }
}
