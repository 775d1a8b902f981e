// A HIP program over the software HSA agent, for hip_processes.py. It launches kernels of a millisecond on
// one stream as fast as possible until it is killed, and writes "<milliseconds> <kernels that have begun>"
// every 10 ms. For each line "streams <count>" of its input it makes and destroys that many streams, and
// writes "took <milliseconds>"; for each line "allocate <MiB>" it allocates memory, and writes "allocated
// <the runtime's error> free <MiB>". It does not use XSched's API.
#include <stdio.h>
#include <string.h>
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

void MakeStreams(int count) {
  using namespace std::chrono;
  const auto begin = steady_clock::now();
  for (int i = 0; i < count; ++i) {
    hipStream_t stream = nullptr;
    Check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
    Check(hipStreamDestroy(stream), "hipStreamDestroy");
  }
  printf("took %.3f\n", duration<double, std::milli>(steady_clock::now() - begin).count());
}

void Allocate(int mib) {
  void* memory = nullptr;
  size_t free = 0;
  size_t total = 0;
  const hipError_t error = hipMalloc(&memory, static_cast<size_t>(mib) << 20);
  Check(hipMemGetInfo(&free, &total), "hipMemGetInfo");
  printf("allocated %d free %zu\n", error, free >> 20);
}

void DoAsAsked() {
  char what[16];
  for (int count = 0; scanf(" %15s %d", what, &count) == 2;)
    strcmp(what, "streams") == 0 ? MakeStreams(count) : Allocate(count);
}

}  // namespace

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  hipStream_t stream = nullptr;
  Check(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  // On a separate thread, because a thread that launches on a held stream waits.
  std::thread(WriteProgress).detach();
  std::thread(DoAsAsked).detach();
  for (int us = 1000;;) {
    void* arguments[] = {&us};
    for (int i = 0; i < 32; ++i)
      Check(hipLaunchKernel(kKernelSpinUs, dim3(1), dim3(64), arguments, 0, stream), "hipLaunchKernel");
    Check(hipStreamSynchronize(stream), "hipStreamSynchronize");
  }
}
