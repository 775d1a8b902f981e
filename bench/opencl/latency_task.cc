// A latency-critical OpenCL program, which does not use XSched's API. A task of a few kernels arrives at a
// fixed rate, and the time from its arrival to its end is recorded. With --continuous, a batch job of the
// same kernels.
//
//   xsched-latency-task --seconds 10 --json latencies.json
//   xsched-latency-task --continuous --seconds 10
//   xsched-latency-task --count 4 --turns IN OUT --seconds 10
//
// With --turns, it takes turns with another program, without XSched: it runs `count` kernels for each byte
// that it reads from file descriptor IN, and then writes one to OUT.
//
// JSON: {"kernel_ms": …, "kernels_per_task": …, "latency_ms": [...]}; with --continuous {"kernel_ms": …,
// "kernels": …, "seconds": …}, and with --times also "times_ns": [[start, end], …] of these kernels. Exit
// status 1 with one line on stderr if OpenCL cannot be used.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "opencl_functions.h"

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Options {
  double seconds = 10;
  double kernel_ms = 2;
  int kernels = 5;
  double rate_hz = 20;
  bool continuous = false;
  bool times = false;
  int ahead = 64;
  uint64_t count = 0;
  std::vector<int> turns;
  double iterations_per_ms = 0;
  std::string json;
};

void Check(cl_int error, const char* what) {
  if (error != CL_SUCCESS) {
    throw std::runtime_error(std::string(what) + " failed with OpenCL error " + std::to_string(error));
  }
}

// One queue, one kernel whose length is set by a loop count.
class Work {
 public:
  // `timed`: the device notes when it begins and ends each kernel.
  explicit Work(bool timed) {
    cl_platform_id platform;
    Check(cl_.clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs (is an OpenCL driver installed?)");
    Check(cl_.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device_, nullptr), "clGetDeviceIDs");
    cl_int error;
    context_ = cl_.clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
    Check(error, "clCreateContext");
    queue_ = cl_.clCreateCommandQueue(context_, device_, timed ? CL_QUEUE_PROFILING_ENABLE : 0, &error);
    Check(error, "clCreateCommandQueue");
    const char* source =
        "__kernel void work(__global float* data, int loops) {\n"
        "  size_t i = get_global_id(0);\n"
        "  float x = data[i];\n"
        "  for (int k = 0; k < loops; ++k) x = x * 0.9999f + 0.5f;\n"
        "  data[i] = x;\n"
        "}\n";
    program_ = cl_.clCreateProgramWithSource(context_, 1, &source, nullptr, &error);
    Check(error, "clCreateProgramWithSource");
    Check(cl_.clBuildProgram(program_, 1, &device_, "", nullptr, nullptr), "clBuildProgram");
    kernel_ = cl_.clCreateKernel(program_, "work", &error);
    Check(error, "clCreateKernel");
    std::vector<float> zeros(kItems, 0.0f);
    buffer_ = cl_.clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, kItems * sizeof(float),
                                 zeros.data(), &error);
    Check(error, "clCreateBuffer");
    Check(cl_.clSetKernelArg(kernel_, 0, sizeof buffer_, &buffer_), "clSetKernelArg");
    SetLoops(1000);
  }
  ~Work() {
    cl_.clReleaseMemObject(buffer_);
    cl_.clReleaseKernel(kernel_);
    cl_.clReleaseProgram(program_);
    cl_.clReleaseCommandQueue(queue_);
    cl_.clReleaseContext(context_);
  }

  void SetLoops(int loops) { Check(cl_.clSetKernelArg(kernel_, 1, sizeof loops, &loops), "clSetKernelArg"); }
  void Launch(cl_event* event = nullptr) {
    Check(cl_.clEnqueueNDRangeKernel(queue_, kernel_, 1, nullptr, &kItems, &kGroup, 0, nullptr, event),
          "clEnqueueNDRangeKernel");
  }
  void Finish() { Check(cl_.clFinish(queue_), "clFinish"); }
  void Flush() { Check(cl_.clFlush(queue_), "clFlush"); }
  void Wait(cl_event event) { Check(cl_.clWaitForEvents(1, &event), "clWaitForEvents"); }
  void Release(cl_event event) { cl_.clReleaseEvent(event); }

  // When the device began and ended it. The clock is that of the device's driver.
  std::array<cl_ulong, 2> TimesOf(cl_event event) const {
    std::array<cl_ulong, 2> times{};
    Check(cl_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof times[0], &times[0], nullptr),
          "clGetEventProfilingInfo");
    Check(cl_.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof times[1], &times[1], nullptr),
          "clGetEventProfilingInfo");
    return times;
  }

  // Loops of a kernel that takes one millisecond on this device, if it is otherwise idle: the best of several
  // tries.
  double CalibrateLoopsPerMs() {
    constexpr int kLoops = 500;
    SetLoops(kLoops);
    double best = 1e9;
    for (int i = 0; i < 12; ++i) {
      auto begin = Clock::now();
      Launch();
      Finish();
      best = std::min(best, Milliseconds(Clock::now() - begin).count());
    }
    return kLoops / best;
  }

 private:
  // Enough work-groups to occupy every core of a CPU device.
  static constexpr size_t kItems = 32768;
  static constexpr size_t kGroup = 64;

  xsched::bench::OpenClFunctions cl_;
  cl_device_id device_{};
  cl_context context_{};
  cl_command_queue queue_{};
  cl_program program_{};
  cl_kernel kernel_{};
  cl_mem buffer_{};
};

nlohmann::json RunTasks(Work& work, const Options& options) {
  std::vector<double> latencies;
  auto period =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / options.rate_hz));
  auto arrival = Clock::now() + period;
  auto end = Clock::now() +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.seconds));
  while (arrival < end) {
    std::this_thread::sleep_until(arrival);
    auto begin = Clock::now();
    for (int i = 0; i < options.kernels; ++i) work.Launch();
    work.Finish();
    latencies.push_back(Milliseconds(Clock::now() - begin).count());
    // A late task does not delay the next one, which comes at its time.
    while (arrival < Clock::now()) arrival += period;
  }
  return {{"kernel_ms", options.kernel_ms}, {"kernels_per_task", options.kernels}, {"latency_ms", latencies}};
}

// Enqueues a number of kernels at once. Returns how long they take.
nlohmann::json RunCount(Work& work, const Options& options) {
  auto begin = Clock::now();
  for (uint64_t i = 0; i < options.count; ++i) work.Launch();
  work.Finish();
  double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return {{"kernel_ms", options.kernel_ms}, {"kernels", options.count}, {"seconds", seconds}};
}

// Ends when its time is over, or the other program has ended.
nlohmann::json RunInTurns(Work& work, const Options& options) {
  const int in = options.turns[0];
  const int out = options.turns[1];
  uint64_t kernels = 0;
  char turn = 0;
  auto begin = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  for (int turns = 0; read(in, &turn, 1) == 1; ++turns) {
    if (turns == 1) {  // in the turn before, the other program may still have been starting
      begin = Clock::now();
      kernels = 0;
    }
    if (seconds() >= options.seconds) break;
    for (uint64_t i = 0; i < options.count; ++i) work.Launch();
    work.Finish();
    kernels += options.count;
    if (write(out, &turn, 1) != 1) break;
  }
  return {{"kernel_ms", options.kernel_ms}, {"kernels", kernels}, {"seconds", seconds()}};
}

nlohmann::json RunContinuously(Work& work, const Options& options) {
  auto begin = Clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<cl_event> ring(static_cast<size_t>(options.ahead), nullptr);
  uint64_t kernels = 0;
  std::vector<std::array<cl_ulong, 2>> times;
  for (size_t slot = 0; seconds() < options.seconds; slot = (slot + 1) % ring.size()) {
    if (ring[slot] != nullptr) {
      work.Wait(ring[slot]);
      if (options.times) times.push_back(work.TimesOf(ring[slot]));
      work.Release(ring[slot]);
      ++kernels;
    }
    work.Launch(&ring[slot]);
    work.Flush();
  }
  double measured = seconds();
  work.Finish();
  for (cl_event event : ring) {
    if (event != nullptr) work.Release(event);
  }
  nlohmann::json result = {{"kernel_ms", options.kernel_ms}, {"kernels", kernels}, {"seconds", measured}};
  if (options.times) result["times_ns"] = times;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A latency-critical OpenCL task, or a continuous one");
  app.add_option("--seconds", options.seconds, "how long to run")->check(CLI::PositiveNumber);
  app.add_option("--kernel-ms", options.kernel_ms, "length of a kernel on an idle device")
      ->check(CLI::PositiveNumber);
  app.add_option("--kernels", options.kernels, "kernels of one task")->check(CLI::PositiveNumber);
  app.add_option("--rate", options.rate_hz, "tasks per second")->check(CLI::PositiveNumber);
  app.add_flag("--continuous", options.continuous, "launch kernels without a pause instead");
  app.add_flag("--times", options.times, "with --continuous: when the device began and ended each kernel");
  app.add_option("--count", options.count, "launch so many kernels, all at once, and time them");
  app.add_option("--turns", options.turns,
                 "with --count: in turns with another program; two file descriptors")
      ->expected(2)
      ->needs("--count");
  app.add_option("--ahead", options.ahead, "with --continuous: kernels enqueued ahead")
      ->check(CLI::PositiveNumber);
  app.add_option("--loops-per-ms", options.iterations_per_ms,
                 "kernel loops per millisecond (default: measured; give it when the device is busy)");
  app.add_option("--json", options.json, "write the results here");
  bool calibrate = false;
  app.add_flag("--calibrate", calibrate, "print the loops per millisecond and exit");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);  // the other program of --turns may end first
  try {
    Work work(options.times);
    if (options.iterations_per_ms <= 0) options.iterations_per_ms = work.CalibrateLoopsPerMs();
    if (calibrate) {
      std::printf("%.1f\n", options.iterations_per_ms);
      return 0;
    }
    work.SetLoops(std::max(1, static_cast<int>(options.iterations_per_ms * options.kernel_ms)));
    work.Launch();
    work.Finish();
    nlohmann::json result = !options.turns.empty() ? RunInTurns(work, options)
                            : options.count != 0   ? RunCount(work, options)
                            : options.continuous   ? RunContinuously(work, options)
                                                   : RunTasks(work, options);
    if (options.json.empty()) {
      std::printf("%s\n", result.dump().c_str());
    } else {
      std::ofstream file(options.json);
      file << result.dump() << "\n";
      if (!file) throw std::runtime_error("cannot write " + options.json);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "xsched-latency-task: %s\n", error.what());
    return 1;
  }
  return 0;
}
