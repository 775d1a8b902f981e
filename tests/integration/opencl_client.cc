// A program that uses OpenCL, for the tests in opencl_processes.py. It opens the OpenCL library itself, so
// that it can close it again.
//
//   opencl_client queues|threads|unload|unload-busy|fork-first|fork-idle|fork-later|work|continuous|busy
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "process_usage.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const char* what) {
  printf("failed: %s\n", what);
  fflush(stdout);
  _exit(1);
}

// The OpenCL library. Each object opens it anew.
struct OpenCl {
  void* library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

#define FUNCTION(name) decltype(&::name) name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))
  FUNCTION(clGetPlatformIDs);
  FUNCTION(clGetDeviceIDs);
  FUNCTION(clCreateContext);
  FUNCTION(clReleaseContext);
  FUNCTION(clCreateCommandQueue);
  FUNCTION(clReleaseCommandQueue);
  FUNCTION(clCreateBuffer);
  FUNCTION(clReleaseMemObject);
  FUNCTION(clEnqueueFillBuffer);
  FUNCTION(clEnqueueReadBuffer);
  FUNCTION(clFlush);
  FUNCTION(clFinish);
#undef FUNCTION

  OpenCl() {
    if (library == nullptr || clFinish == nullptr) Fail("open the OpenCL library");
  }
  ~OpenCl() { dlclose(library); }
};

struct Device {
  const OpenCl& cl;
  cl_device_id id{};
  cl_context context{};

  explicit Device(const OpenCl& opencl) : cl(opencl) {
    cl_platform_id platform;
    if (cl.clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) Fail("find a platform");
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr) != CL_SUCCESS) Fail("find a device");
    context = cl.clCreateContext(nullptr, 1, &id, nullptr, nullptr, nullptr);
    if (context == nullptr) Fail("make a context");
  }
  ~Device() { cl.clReleaseContext(context); }
};

// A queue with a buffer. Each piece of work leaves a new value in it.
struct Worker {
  const OpenCl& cl;
  cl_command_queue queue;
  cl_mem buffer;
  cl_int value = 0;
  size_t size;

  explicit Worker(const Device& device, size_t bytes = 4096) : cl(device.cl), size(bytes) {
    queue = cl.clCreateCommandQueue(device.context, device.id, 0, nullptr);
    buffer = cl.clCreateBuffer(device.context, CL_MEM_READ_WRITE, size, nullptr, nullptr);
    if (queue == nullptr || buffer == nullptr) Fail("make a queue and a buffer");
  }
  ~Worker() {
    cl.clReleaseCommandQueue(queue);
    cl.clReleaseMemObject(buffer);
  }
  void Enqueue(int count) {
    for (int i = 0; i < count; ++i) {
      ++value;
      if (cl.clEnqueueFillBuffer(queue, buffer, &value, sizeof value, 0, size, 0, nullptr, nullptr) !=
          CL_SUCCESS)
        Fail("enqueue");
    }
  }
  void Check() {
    cl_int read = -1;
    if (cl.clEnqueueReadBuffer(queue, buffer, CL_TRUE, size - sizeof read, sizeof read, &read, 0, nullptr,
                               nullptr) != CL_SUCCESS ||
        read != value) {
      Fail("find what was written");
    }
  }
};

void WorkFor(double seconds, Worker& worker) {
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    worker.Enqueue(20);
    worker.Check();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (Clock::now() < end);
}

// Repeats `round` until one-time costs have occurred, then counts.
void LeavesNothing(const char* what, int warm_up, int rounds, const std::function<void()>& round) {
  for (int i = 0; i < warm_up; ++i) round();
  ProcessUsage before = ProcessUsage::Now();
  for (int i = 0; i < rounds; ++i) round();
  before.PrintGrowth(what);
}

void Queues() {
  OpenCl cl;
  Device device(cl);
  bool finish = false;
  LeavesNothing("queues", 150, 500, [&] {
    Worker worker(device);
    worker.Enqueue(3);
    // Every second one is released with unfinished commands.
    finish = !finish;
    finish ? worker.Check() : void(cl.clFlush(worker.queue));
  });
}

void Threads() {
  OpenCl cl;
  Device device(cl);
  Worker common(device);
  LeavesNothing("threads", 20, 80, [&] {
    std::vector<std::unique_ptr<Worker>> own(8);
    std::vector<std::thread> threads;
    for (auto& worker : own) {
      threads.emplace_back([&] {
        worker = std::make_unique<Worker>(device);
        worker->Enqueue(3);
        cl_int zero = 0;
        cl.clEnqueueFillBuffer(common.queue, common.buffer, &zero, sizeof zero, 0, 4096, 0, nullptr, nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (auto& worker : own) worker->Check();
    cl.clFinish(common.queue);
  });
}

void Unload() {
  LeavesNothing("closed", 20, 30, [] {
    OpenCl cl;
    Device device(cl);
    Worker worker(device);
    worker.Enqueue(3);
    worker.Check();
  });
  // It must still be scheduled: the tests check that.
  OpenCl cl;
  Device device(cl);
  Worker worker(device);
  printf("working\n");
  WorkFor(1, worker);
}

// Closes the library while a queue has work.
void UnloadBusy() {
  auto cl = std::make_unique<OpenCl>();
  auto* device = new Device(*cl);
  auto* worker = new Worker(*device, 16 << 20);
  worker->Enqueue(100);
  cl->clFlush(worker->queue);
  cl.reset();
  printf("closed\n");
  sleep(1);
}

int ChildStatus(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void WorkAlone(const char* who, double seconds = 1) {
  OpenCl cl;
  Device device(cl);
  Worker worker(device);
  WorkFor(seconds, worker);
  printf("%s worked\n", who);
}

// Neither process has used OpenCL before the fork.
void ForkFirst() {
  pid_t child = fork();
  WorkAlone(child == 0 ? "child" : "parent");
  if (child == 0) exit(3);
  printf("child ended with %d\n", ChildStatus(child));
}

// The parent goes on using OpenCL. The child does not use it, and ends with all exit handlers.
void ForkIdle() {
  OpenCl cl;
  Device device(cl);
  Worker worker(device);
  WorkFor(0.1, worker);
  worker.Enqueue(50);
  pid_t child = fork();
  if (child == 0) exit(3);
  printf("child ended with %d\n", ChildStatus(child));
  WorkFor(0.5, worker);
  printf("parent worked\n");
}

// Both go on: the child with inherited objects and with a queue of its own.
void ForkLater() {
  OpenCl cl;
  Device device(cl);
  Worker worker(device);
  WorkFor(0.1, worker);
  pid_t child = fork();
  WorkFor(0.3, worker);
  Worker own(device);
  WorkFor(0.7, own);
  if (child == 0) {
    printf("child worked\n");
    exit(3);
  }
  printf("parent worked\n");
  printf("child ended with %d\n", ChildStatus(child));
}

// Works until it is killed, in rounds of so many commands. Writes "<milliseconds> <rounds>" every 10 ms. For
// each line "queues <count>" of its input it makes and releases that number of queues, and writes "took
// <milliseconds>".
void WorkInRounds(size_t bytes, int commands) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  OpenCl cl;
  Device device(cl);
  Worker worker(device, bytes);
  std::atomic<int> rounds = 0;
  std::thread([&] {
    for (;;) {
      printf("%.3f %d\n", Milliseconds(Clock::now().time_since_epoch()).count(), rounds.load());
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }).detach();
  std::thread([&] {
    int count = 0;
    while (scanf(" queues %d", &count) == 1) {
      const auto begin = Clock::now();
      for (int i = 0; i < count; ++i) {
        cl_command_queue queue = cl.clCreateCommandQueue(device.context, device.id, 0, nullptr);
        if (queue == nullptr || cl.clReleaseCommandQueue(queue) != CL_SUCCESS)
          Fail("make and release a queue");
      }
      printf("took %.3f\n", Milliseconds(Clock::now() - begin).count());
    }
  }).detach();
  for (;; ++rounds) {
    worker.Enqueue(commands);
    worker.Check();
  }
}

// Short commands: the program's own time counts as much as the device's.
void Continuous() { WorkInRounds(4096, 20); }

// The device always has work, but for a moment after each round.
void Busy() { WorkInRounds(4 << 20, 16); }

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const std::pair<const char*, void (*)()> modes[] = {
      {"queues", Queues},         {"threads", Threads},
      {"unload", Unload},         {"unload-busy", UnloadBusy},
      {"fork-first", ForkFirst},  {"fork-idle", ForkIdle},
      {"fork-later", ForkLater},  {"work", [] { WorkAlone("rival", 20); }},
      {"continuous", Continuous}, {"busy", Busy}};
  for (auto [name, run] : modes) {
    if (argc == 2 && argv[1] == std::string(name)) {
      run();
      return 0;
    }
  }
  return 2;
}
