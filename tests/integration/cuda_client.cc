// A CUDA program over the stand-in driver, for the tests in cuda_processes.py and cuda_liveness.py. It runs
// kernels on one stream, and the device counts them. It does not use XSched's API.
//
//   cuda_client MODE KERNEL_US SECONDS
//
// Modes:
//   idle           launches nothing
//   task           10 kernels, 10 times a second
//   continuous     keeps 32 kernels in flight
//   ahead          launches and never waits, until a launch itself blocks
//   freeing        launches 8 kernels, then frees memory, which waits for them; and repeats
//   synchronizing  the same, but synchronizes the context
//   streamsync     the same, but synchronizes the stream
//   making         the same, but makes and destroys a context
//   instantiating  keeps 16 kernels in flight, and instantiates graphs, which may have to load code
//   giving         increments a word of the shared file after every 4 kernels
//   taking         makes its stream wait until that word has grown, then launches a kernel and waits for it;
//                  writes "cycle <ms>"; and repeats
// The last eight run on a separate thread, so that the program can still print its progress.
//
// Writes "ready <ms>" after its first use of the driver (how long that took), then "<milliseconds> <kernels
// finished>" every 10 ms, and a line when one of these changes:
//   group <time slice, µs> <on the device: 1, or off: 0> <how often the slice was set> priority <the
//   stream's, as the driver reports it> [the second stream's]
//
// A line of input is a command:
//   mode MODE
//   launch N               launches N kernels
//   streams N              makes, uses and destroys N streams; writes "took <ms>"
//   second PRIORITY        makes and uses another stream
//   share FILE             the file for giving and taking
//   refuse CONTROL         the resource manager refuses CONTROL from now on
//   fault FAULT CONTROL N  calls fake_rm_fault
//   closefrom FILE         closes all descriptors except the standard ones, and opens FILE in place of each
//   allocate MIB           allocates memory, and writes "allocated <the driver's error>"
//   free                   frees what was allocated last, and writes "freed <the driver's error>"
//   memory                 writes "memory <free> of <total>", in MiB
//   exit                   ends the program; as with a real driver, the end waits for the device
#include <cuda.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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
    CUmodule module;
    Check(cuInit(0), "cuInit");
    Check(cuDevicePrimaryCtxRetain(&context_, 0), "cuDevicePrimaryCtxRetain");
    UseThread();
    Check(cuModuleLoadData(&module, "any"), "cuModuleLoadData");
    Check(cuModuleGetFunction(&append_, module, "append_after"), "cuModuleGetFunction");
    Check(cuMemHostAlloc(&log_, 1 << 20, 0), "cuMemHostAlloc");
    memset(log_, 0, 1 << 20);
    Check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }

  uint64_t finished() {
    // The size of the log. A new one is begun while nothing writes to it.
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
  std::string priorities() const {
    const std::string first = std::to_string(standin_stream_priority(stream_));
    return second_ == nullptr ? first : first + " " + std::to_string(standin_stream_priority(second_));
  }

  void Launch() { Launch(stream_), ++launched_; }
  void LaunchBatch() {
    for (int i = 0; i < 8; ++i) Launch();
  }
  void SynchronizeStream() const { Check(cuStreamSynchronize(stream_), "cuStreamSynchronize"); }
  static void SynchronizeContext() { Check(cuCtxSynchronize(), "cuCtxSynchronize"); }
  static void Free() {
    CUdeviceptr word;
    Check(cuMemAlloc(&word, 4), "cuMemAlloc");
    Check(cuMemFree(word), "cuMemFree");
  }
  void MakeContext() const {
    CUcontext context;
    Check(cuCtxCreate(&context, nullptr, 0, 0), "cuCtxCreate");
    Check(cuCtxDestroy(context), "cuCtxDestroy");
    UseThread();
  }
  static void Instantiate() {
    CUgraph graph;
    CUgraphExec executable;
    Check(cuGraphCreate(&graph, 0), "cuGraphCreate");
    Check(cuGraphInstantiate(&executable, graph, 0), "cuGraphInstantiate");
    Check(cuGraphExecDestroy(executable), "cuGraphExecDestroy");
    Check(cuGraphDestroy(graph), "cuGraphDestroy");
  }
  // Never waits: at most 16 kernels are in flight.
  void LaunchBatchIfFew() {
    if (launched_ - finished() <= 8) LaunchBatch();
  }
  void UseThread() const { Check(cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
  void Share(const std::string& file) {
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, kPage) != 0) _exit(1);
    shared_ = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared_ == MAP_FAILED) _exit(1);
    close(fd);
    Check(cuMemHostRegister(shared_, kPage, 0), "cuMemHostRegister");
  }
  void Give() {
    for (int i = 0; i < 4; ++i) Launch();
    Check(cuStreamWriteValue32(stream_, Word(), ++given_, 0), "cuStreamWriteValue32");
    while (launched_ - finished() > 16) usleep(500);
  }
  void Take() {
    const uint32_t next = __atomic_load_n(static_cast<uint32_t*>(shared_), __ATOMIC_ACQUIRE) + 1;
    Check(cuStreamWaitValue32(stream_, Word(), next, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
    Launch();
    SynchronizeStream();
  }
  void MakeSecond(int priority) {
    Check(cuStreamCreateWithPriority(&second_, CU_STREAM_NON_BLOCKING, priority),
          "cuStreamCreateWithPriority");
    Launch(second_);
    ++launched_;
  }

  void Allocate(size_t mib) {
    CUdeviceptr memory = 0;
    const CUresult result = cuMemAlloc(&memory, mib << 20);
    if (result == CUDA_SUCCESS) memory_.push_back(memory);
    printf("allocated %d\n", result);
  }
  void FreeLast() {
    if (memory_.empty()) return;
    printf("freed %d\n", cuMemFree(memory_.back()));
    memory_.pop_back();
  }
  static void PrintMemory() {
    size_t free = 0;
    size_t total = 0;
    Check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
    printf("memory %zu of %zu\n", free >> 20, total >> 20);
  }

  // Makes, uses and destroys streams beside the program's own.
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

  static constexpr size_t kPage = 4096;
  CUdeviceptr Word() const { return reinterpret_cast<CUdeviceptr>(shared_); }

  int kernel_us_;
  CUfunction append_ = nullptr;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, second_ = nullptr;
  std::vector<CUdeviceptr> memory_;
  void* log_ = nullptr;
  uint64_t base_ = 0;
  void* shared_ = nullptr;
  uint32_t given_ = 0;
  std::atomic<uint64_t> launched_{0};
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

enum class Mode {
  kIdle,
  kTask,
  kContinuous,
  kAhead,
  kFreeing,
  kSynchronizing,
  kStreamsync,
  kMaking,
  kInstantiating,
  kGiving,
  kTaking
};

Mode ModeOf(const std::string& name) {
  const char* const names[] = {"idle",       "task",   "continuous",    "ahead",  "freeing", "synchronizing",
                               "streamsync", "making", "instantiating", "giving", "taking"};
  for (size_t i = 0; i < std::size(names); ++i) {
    if (name == names[i]) return static_cast<Mode>(i);
  }
  printf("failed: no mode %s\n", name.c_str());
  _exit(2);
}

double NowMs() { return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count(); }

void RunModesThatWait(Program& program, const std::atomic<Mode>& mode) {
  program.UseThread();
  for (;;) {
    switch (mode) {
      case Mode::kAhead:
        program.Launch();
        break;
      case Mode::kFreeing:
        program.LaunchBatch();
        Program::Free();
        break;
      case Mode::kSynchronizing:
        program.LaunchBatch();
        Program::SynchronizeContext();
        break;
      case Mode::kStreamsync:
        program.LaunchBatch();
        program.SynchronizeStream();
        break;
      case Mode::kMaking:
        program.LaunchBatch();
        program.MakeContext();
        break;
      case Mode::kInstantiating:
        program.LaunchBatchIfFew();
        Program::Instantiate();
        break;
      case Mode::kGiving:
        program.Give();
        break;
      case Mode::kTaking: {
        const double before = NowMs();
        program.Take();
        printf("cycle %.1f\n", NowMs() - before);
        break;
      }
      default:
        usleep(1000);
    }
  }
}

// Some programs close all descriptors that they may have inherited. FILE takes the place of each.
void CloseFrom(const std::string& file) {
  const int last = open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int fd = STDERR_FILENO + 1; fd <= last; ++fd) {
    close(fd);
    if (open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600) < 0) _exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  std::ios::sync_with_stdio(false);  // so that std::cin knows which lines it has already buffered
  if (argc != 4) return 2;
  std::atomic<Mode> mode = ModeOf(argv[1]);
  // Registered first, so it runs last.
  atexit([] {
    while (standin_pending(0) != 0) usleep(1000);
  });
  const double start = NowMs();
  Program program(atoi(argv[2]));
  if (mode != Mode::kIdle) program.Launch();
  printf("ready %.1f\n", NowMs() - start);
  // Not joined: it may be blocked in a call forever, and the program must end nevertheless.
  std::thread([&] { RunModesThatWait(program, mode); }).detach();
  const double end = NowMs() + atof(argv[3]) * 1000;
  double next_line = 0;
  double next_task = 0;
  Group seen;
  std::string seen_priorities = "0";
  while (NowMs() < end) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    std::string line;
    const bool buffered = std::cin.rdbuf()->in_avail() > 0;
    if ((buffered || poll(&input, 1, 0) > 0) && std::getline(std::cin, line)) {
      std::istringstream words(line);
      std::string command;
      words >> command;
      std::string name, control_name;
      if (command == "mode" && words >> name) mode = ModeOf(name);
      if (command == "exit") break;
      int count = 0;
      if (command == "launch" && words >> count) {
        for (int i = 0; i < count; ++i) program.Launch();
      }
      if (command == "streams" && words >> count) {
        const double before = NowMs();
        program.Streams(count);
        printf("took %.1f\n", NowMs() - before);
      }
      if (command == "allocate" && words >> count) program.Allocate(static_cast<size_t>(count));
      if (command == "free") program.FreeLast();
      if (command == "memory") Program::PrintMemory();
      if (command == "share" && words >> name) program.Share(name);
      if (command == "second" && words >> count) program.MakeSecond(count);
      if (command == "closefrom" && words >> name) CloseFrom(name);
      if (command == "fault" && words >> name >> control_name >> count &&
          !fake_rm_fault(name.c_str(), control_name.c_str(), static_cast<uint64_t>(count))) {
        printf("failed: no such fault\n");
      }
      uint32_t control = 0;
      if (command == "refuse" && words >> std::hex >> control)
        fake_rm_answer(control, standin::rm::kNotSupported);
    }
    const uint64_t finished = program.finished();
    const double now = NowMs();
    if (mode == Mode::kContinuous) {
      while (program.launched() - finished < 32) program.Launch();
    } else if (mode == Mode::kTask && now >= next_task) {
      next_task = now + 100;
      for (int i = 0; i < 10; ++i) program.Launch();
    }
    if (const Group group = Group::Now(); !(group == seen)) {
      seen = group;
      printf("group %llu %d %llu\n", static_cast<unsigned long long>(group.slice_us), group.on,
             static_cast<unsigned long long>(group.sets));
    }
    if (const std::string priorities = program.priorities(); priorities != seen_priorities) {
      seen_priorities = priorities;
      printf("priority %s\n", priorities.c_str());
    }
    if (now >= next_line) {
      next_line = now + 10;
      printf("%.3f %llu\n", now, static_cast<unsigned long long>(finished));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  mode = Mode::kIdle;
  exit(0);  // main does not return: the thread still uses what is here
}
