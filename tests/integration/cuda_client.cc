// A CUDA program over the stand-in driver, for the tests in cuda_processes.py: kernels on one stream, counted
// by the device. Knows nothing of XSched.
//
//   cuda_client continuous|task|idle KERNEL_US SECONDS
//
// Writes "<milliseconds> <kernels finished>" every 10 ms, and whenever one of these has changed
//   group <time slice, µs> <on the device: 1, or off: 0> <times that the slice was set>
//   priority <of the stream, as the driver has it>
//
// A line of input is a command: "mode MODE", "streams N" (makes, uses and destroys as many), "refuse CONTROL"
// (the resource manager, from now on), "exit". As with a driver, its end waits for the device.
#include <cuda.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "fake_rm.h"
#include "rm_abi.h"
#include "standin.h"

namespace {

using Clock = std::chrono::steady_clock;

void Check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  printf("failed: %s: %d\n", what, result);
  _exit(1);
}

class Program {
 public:
  explicit Program(int kernel_us) : kernel_us_(kernel_us) {
    CUcontext context;
    CUmodule module;
    Check(cuInit(0), "cuInit");
    Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    Check(cuModuleLoadData(&module, "any"), "cuModuleLoadData");
    Check(cuModuleGetFunction(&append_, module, "append_after"), "cuModuleGetFunction");
    Check(cuMemHostAlloc(&log_, 1 << 20, 0), "cuMemHostAlloc");
    memset(log_, 0, 1 << 20);
    Check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }

  uint64_t finished() {
    // The log has so much room: a new one is begun while nothing writes to it.
    const uint64_t entries =
        static_cast<uint64_t>(__atomic_load_n(static_cast<int*>(log_), __ATOMIC_ACQUIRE));
    if (entries > 200'000) {
      Check(cuStreamSynchronize(stream_), "cuStreamSynchronize");
      base_ += static_cast<uint64_t>(*static_cast<int*>(log_));
      memset(log_, 0, sizeof(int));
      return base_;
    }
    return base_ + entries;
  }
  uint64_t launched() const { return launched_; }
  int priority() const {
    int priority = 0;
    Check(cuStreamGetPriority(stream_, &priority), "cuStreamGetPriority");
    return priority;
  }

  void Launch() { Launch(stream_), ++launched_; }

  // Beside the program's own stream.
  void Streams(int count) const {
    for (int i = 0; i < count; ++i) {
      CUstream stream;
      CUdeviceptr word;
      Check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      Check(cuMemAlloc(&word, 4), "cuMemAlloc");
      Check(cuMemsetD32Async(word, 1, 1, stream), "cuMemsetD32Async");
      Check(cuStreamDestroy(stream), "cuStreamDestroy");
    }
  }

 private:
  void Launch(CUstream stream) {
    int value = 1;
    void* arguments[] = {&log_, &value, &kernel_us_};
    Check(cuLaunchKernel(append_, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
  }

  int kernel_us_;
  CUfunction append_ = nullptr;
  CUstream stream_ = nullptr;
  void* log_ = nullptr;
  uint64_t base_ = 0;
  uint64_t launched_ = 0;
};

struct Group {
  uint64_t slice_us = 0;
  int on = 1;
  uint64_t sets = 0;
  bool operator==(const Group&) const = default;

  static Group Now() {
    return {standin_timeslice(0), standin_scheduled(0), fake_rm_controls(standin::rm::kGroupSetTimeslice)};
  }
};

double NowMs() { return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count(); }

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc != 4) return 2;
  std::string mode = argv[1];
  // Registered first, and so last to run.
  atexit([] {
    while (standin_pending(0) != 0) usleep(1000);
  });
  Program program(atoi(argv[2]));
  const double end = NowMs() + atof(argv[3]) * 1000;
  double next_line = 0;
  double next_task = 0;
  Group seen;
  int seen_priority = 0;
  while (NowMs() < end) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    std::string line;
    if (poll(&input, 1, 0) > 0 && std::getline(std::cin, line)) {
      std::istringstream words(line);
      std::string command;
      words >> command;
      if (command == "mode") words >> mode;
      if (command == "exit") return 0;
      int count = 0;
      if (command == "streams" && words >> count) program.Streams(count);
      uint32_t control = 0;
      if (command == "refuse" && words >> std::hex >> control)
        fake_rm_answer(control, standin::rm::kNotSupported);
    }
    const uint64_t finished = program.finished();
    const double now = NowMs();
    if (mode == "continuous") {
      while (program.launched() - finished < 32) program.Launch();
    } else if (mode == "task" && now >= next_task) {
      next_task = now + 100;
      for (int i = 0; i < 10; ++i) program.Launch();
    }
    if (const Group group = Group::Now(); !(group == seen)) {
      seen = group;
      printf("group %llu %d %llu\n", static_cast<unsigned long long>(group.slice_us), group.on,
             static_cast<unsigned long long>(group.sets));
    }
    if (const int priority = program.priority(); priority != seen_priority) {
      seen_priority = priority;
      printf("priority %d\n", priority);
    }
    if (now >= next_line) {
      next_line = now + 10;
      printf("%.3f %llu\n", now, static_cast<unsigned long long>(finished));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
