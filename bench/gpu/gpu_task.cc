// The program of the GPU benchmarks: an urgent task at a fixed rate, a continuous program, both in one
// process, a number of kernels at once, and suspension observed on the GPU. It uses XSched's API only for
// priorities of streams in one process and for suspension, and only if XSched is in the process.
//
//   gpu_task [COMMAND…]      without arguments: commands are lines of standard input, answered one by one
//
// A command is a JSON object, and so is its answer: {"ok": …} or {"error": "…"}.
//   {"do": "calibrate"}                                                → {"base_us", "loops_per_us"}
//   {"do": "use", "base_us", "loops_per_us"}                           sets these, measured on an idle device
//   {"do": "count", "kernel_us", "kernels"}                            → {"seconds"}
//   {"do": "stay"}                                                     → {}
//       launches one short kernel on a stream that stays until the program ends
//   {"do": "task", "kernel_us", "kernels", "rate_hz", "seconds"}       → {"begin", "end", "latency_ms": […]}
//       with "watch_start": true also "start_us": […], from the launch until the GPU begins with it;
//       with "keep": true the stream stays, for the next task
//   {"do": "continuous", "kernel_us"[, "seconds"]}                     → {"progress": [[time, kernels], …]}
//       without "seconds": until the next line, e.g. {"do": "stop"}, which has no other effect
//   {"do": "ahead", "kernel_us", "count_file"}                         → {}, at once
//       launches as many kernels as the driver accepts, and never waits for them, until the program ends;
//       the second word of the file counts the finished ones
//   {"do": "two_streams", the task's, "low_kernel_us", "lead_seconds"} → {"task": …, "continuous": …}
//   {"do": "allocate", "from": "pool" | "driver", "bytes", "count"}     → {"ns": […]}
//       one allocation and its free, in groups: from the device's pool (cuMemAllocAsync), or by cuMemAlloc
//   {"do": "wakes", "rate_hz", "seconds"}                              → {"timer_us": […], "thread_us": […]}
//       how late the machine wakes threads (wakes.h); nothing is launched
//   {"do": "suspend", "kernel_us", "tries", "level"}
//       → {"stopped_us": […], "call_us": […], "resumed_us": […]}
// Times are seconds of CLOCK_MONOTONIC: those of two processes can be compared.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "clock.h"
#include "command_line.h"
#include "device.h"
#include "wakes.h"
#include "xqueue_access.h"

namespace xsched::bench {
namespace {

using Json = nlohmann::json;

void LaunchOnce(const Device& device, CUstream stream) {
  device.Launch(stream, 1);
  device.Synchronize(stream);
}

// ---- a number of kernels ----

Json RunCount(const Device& device, const Json& command) {
  CUstream stream = device.NewStream();
  LaunchOnce(device, stream);
  uint32_t loops = device.Loops(command.at("kernel_us"));
  int kernels = command.at("kernels");
  double begin = Seconds();
  for (int i = 0; i < kernels; ++i) device.Launch(stream, loops);
  device.Synchronize(stream);
  double seconds = Seconds() - begin;
  device.driver().cuStreamDestroy(stream);
  return {{"seconds", seconds}};
}

// ---- the urgent task ----

// Launches `kernels` kernels and waits for them, at the given rate.
Json RunTask(const Device& device, CUstream stream, const Json& command) {
  uint32_t loops = device.Loops(command.at("kernel_us"));
  int kernels = command.at("kernels");
  bool watch_start = command.value("watch_start", false);
  const volatile uint64_t* beat = watch_start ? device.Beat() : nullptr;
  double period = 1 / command.at("rate_hz").get<double>();
  std::vector<double> latencies_ms;
  std::vector<double> starts_us;

  double first = Seconds();
  double end = first + command.at("seconds").get<double>();
  for (double arrival = first + period; arrival < end;) {
    SleepUntil(arrival);
    uint64_t was = watch_start ? *beat : 0;
    double begin = Seconds();
    for (int i = 0; i < kernels; ++i) device.Launch(stream, loops, beat);
    if (watch_start) {
      while (*beat == was && Seconds() - begin < 1) continue;
      starts_us.push_back((Seconds() - begin) * 1e6);
    }
    device.Synchronize(stream);
    latencies_ms.push_back((Seconds() - begin) * 1e3);
    // A late task does not delay the next one, which comes at its time.
    while (arrival < Seconds()) arrival += period;
  }
  Json result = {{"begin", first}, {"end", Seconds()}, {"latency_ms", latencies_ms}};
  if (watch_start) result["start_us"] = starts_us;
  return result;
}

// ---- a competitor that is there and idle ----

// The queue is there until the process ends.
Json Stay(const Device& device) {
  LaunchOnce(device, device.NewStream());
  return Json::object();
}

// ---- the continuous program ----

// Runs kernels without a pause, with a bounded number enqueued ahead, until `stop` returns true.
Json RunContinuously(const Device& device, CUstream stream, double kernel_us,
                     const std::function<bool()>& stop, const volatile uint64_t* beat = nullptr) {
  constexpr double kProgressEvery = 0.01;
  const Driver& driver = device.driver();
  uint32_t loops = device.Loops(kernel_us);
  int batch = kernel_us >= 1000 ? 1 : 8;
  int ahead = kernel_us > 2000 ? 16 : 128;
  std::vector<CUevent> ring(static_cast<size_t>(ahead / batch));
  for (CUevent& event : ring) {
    driver.Check(driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC),
                 "cuEventCreate");
  }
  double last = Seconds();
  uint64_t kernels = 0;
  Json progress = Json::array({Json::array({last, kernels})});
  uint64_t turn = 0;
  for (; !stop(); ++turn) {
    CUevent event = ring[turn % ring.size()];
    if (turn >= ring.size()) {
      driver.Check(driver.cuEventSynchronize(event), "cuEventSynchronize");
      kernels += static_cast<uint64_t>(batch);
      if (double now = Seconds(); now - last >= kProgressEvery) {
        progress.push_back(Json::array({now, kernels}));
        last = now;
      }
    }
    for (int i = 0; i < batch; ++i) device.Launch(stream, loops, beat);
    driver.Check(driver.cuEventRecord(event, stream), "cuEventRecord");
  }
  device.Synchronize(stream);
  progress.push_back(Json::array({Seconds(), turn * static_cast<uint64_t>(batch)}));
  for (CUevent event : ring) driver.cuEventDestroy(event);
  return {{"progress", progress}};
}

// Does this in a separate thread while the object exists.
class ContinuousThread {
 public:
  ContinuousThread(const Device& device, CUstream stream, double kernel_us, const volatile uint64_t* beat)
      : thread_([=, this, &device] {
          try {
            device.MakeCurrent();
            result_ = RunContinuously(
                device, stream, kernel_us, [this] { return stop_.load(); }, beat);
          } catch (const std::exception& error) {
            error_ = error.what();
          }
        }) {}
  ~ContinuousThread() { Stop(); }
  Json Finish() {
    Stop();
    if (!error_.empty()) throw std::runtime_error(error_);
    return result_;
  }

 private:
  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<bool> stop_{false};
  Json result_;
  std::string error_;
  std::thread thread_;
};

// ---- the program that never waits ----

// The thread is blocked in the driver most of the time, because the stream is full. It ends with the process.
void LaunchAhead(Device& device, double kernel_us, const std::string& count_file) {
  device.ShareBeat(count_file);
  CUstream stream = device.NewStream();
  uint32_t loops = device.Loops(kernel_us);
  std::thread([&device, stream, loops] {
    try {
      device.MakeCurrent();
      for (;;) device.Launch(stream, loops, device.Beat());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "launching ahead: %s\n", error.what());
    }
  }).detach();
}

Json RunTwoStreams(const Device& device, const Json& command) {
  CUstream low = device.NewStream();
  CUstream high = device.NewStream();
  LaunchOnce(device, low);
  LaunchOnce(device, high);
  if (UnderXSched()) SetPriority(QueueOf(high), 10);
  ContinuousThread continuous(device, low, command.at("low_kernel_us"), nullptr);
  std::this_thread::sleep_for(std::chrono::duration<double>(command.at("lead_seconds").get<double>()));
  Json task = RunTask(device, high, command);
  Json result = {{"task", task}, {"continuous", continuous.Finish()}};
  device.driver().cuStreamDestroy(low);
  device.driver().cuStreamDestroy(high);
  return result;
}

// ---- allocations ----

// The nanoseconds of one pair, in each of several groups.
template <typename Pair>
std::vector<double> TimesOf(int count, Pair&& pair) {
  constexpr int kGroup = 50;
  std::vector<double> groups;
  for (int i = 0; i < count; i += kGroup) {
    const double begin = Seconds();
    for (int j = 0; j < kGroup; ++j) pair();
    groups.push_back((Seconds() - begin) * 1e9 / kGroup);
  }
  return groups;
}

std::vector<double> PoolTimes(const Device& device, size_t bytes, int count) {
  const Driver& driver = device.driver();
  CUstream stream = device.NewStream();
  CUdeviceptr memory = 0;
  // Without it, the pool would go back to the driver at each synchronization.
  CUdeviceptr kept = 0;
  driver.Check(driver.cuMemAllocAsync(&kept, bytes, stream), "cuMemAllocAsync");
  std::vector<double> times = TimesOf(count, [&] {
    driver.Check(driver.cuMemAllocAsync(&memory, bytes, stream), "cuMemAllocAsync");
    driver.Check(driver.cuMemFreeAsync(memory, stream), "cuMemFreeAsync");
  });
  driver.Check(driver.cuMemFreeAsync(kept, stream), "cuMemFreeAsync");
  device.Synchronize(stream);
  driver.cuStreamDestroy(stream);
  return times;
}

std::vector<double> DriverTimes(const Device& device, size_t bytes, int count) {
  const Driver& driver = device.driver();
  CUdeviceptr memory = 0;
  return TimesOf(count, [&] {
    driver.Check(driver.cuMemAlloc(&memory, bytes), "cuMemAlloc");
    driver.Check(driver.cuMemFree(memory), "cuMemFree");
  });
}

Json RunAllocate(const Device& device, const Json& command) {
  const std::string from = command.at("from");
  if (from != "pool" && from != "driver")
    throw std::runtime_error("memory comes from a pool or the driver, not from " + from);
  return {
      {"ns", (from == "pool" ? PoolTimes : DriverTimes)(device, command.at("bytes"), command.at("count"))}};
}

// ---- suspension ----

// Records when the GPU was last at work, and when it began again after a pause. A separate thread watches all
// the time, so that blocking calls hide nothing.
class BeatWatcher {
 public:
  static constexpr double kQuiet = 0.003;  // no beat for so long: the GPU is not at work

  explicit BeatWatcher(const volatile uint64_t* beat) : thread_([this, beat] { Watch(beat); }) {}
  ~BeatWatcher() {
    stop_ = true;
    thread_.join();
  }
  double last() const { return last_; }
  double resumed() const { return resumed_; }

 private:
  void Watch(const volatile uint64_t* beat) {
    for (uint64_t seen = *beat; !stop_;) {
      uint64_t value = *beat;
      if (value == seen) continue;
      double now = Seconds();
      if (now - last_ >= kQuiet) resumed_ = now;
      last_ = now;
      seen = value;
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<double> last_{Seconds()};
  std::atomic<double> resumed_{0};
  std::thread thread_;
};

bool WaitUntil(const std::function<bool()>& condition) {
  for (double begin = Seconds(); !condition();) {
    if (Seconds() - begin > 1) return false;
  }
  return true;
}

Json RunSuspend(const Device& device, const Json& command) {
  CUstream stream = device.NewStream();
  LaunchOnce(device, stream);
  XQueueHandle queue = QueueOf(stream);
  SetLevel(queue, command.at("level"));
  BeatWatcher watcher(device.Beat());
  ContinuousThread continuous(device, stream, command.at("kernel_us"), device.Beat());

  std::vector<double> stopped_us, call_us, resumed_us;
  int never_stopped = 0, never_resumed = 0;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> pause(0.010, 0.025);
  for (int i = 0; i < command.at("tries").get<int>(); ++i) {
    std::this_thread::sleep_for(std::chrono::duration<double>(pause(random)));
    if (!WaitUntil([&] { return Seconds() - watcher.last() < BeatWatcher::kQuiet / 3; })) {
      throw std::runtime_error("the GPU is not seen at work");
    }
    double suspend = Seconds();
    Suspend(queue);
    call_us.push_back((Seconds() - suspend) * 1e6);
    if (WaitUntil([&] { return Seconds() - std::max(watcher.last(), suspend) >= 2 * BeatWatcher::kQuiet; })) {
      stopped_us.push_back(std::max(0.0, watcher.last() - suspend) * 1e6);
    } else {
      ++never_stopped;
    }
    double resume = Seconds();
    Resume(queue);
    if (WaitUntil([&] { return watcher.resumed() >= resume; })) {
      resumed_us.push_back((watcher.resumed() - resume) * 1e6);
    } else {
      ++never_resumed;
    }
  }
  continuous.Finish();
  return {{"stopped_us", stopped_us},
          {"call_us", call_us},
          {"resumed_us", resumed_us},
          {"never_stopped", never_stopped},
          {"never_resumed", never_resumed}};
}

Json Run(Device& device, const Commands& commands, const Json& command) {
  std::string what = command.at("do");
  if (what == "calibrate") {
    Calibration calibration = device.Calibrate();
    device.Use(calibration);
    return {{"base_us", calibration.base_us}, {"loops_per_us", calibration.loops_per_us}};
  }
  if (what == "use") {
    device.Use({command.at("base_us"), command.at("loops_per_us")});
    return {{"device", device.Name()}, {"under_xsched", UnderXSched()}};
  }
  if (what == "count") return RunCount(device, command);
  if (what == "stay") return Stay(device);
  if (what == "task" || what == "continuous") {
    static CUstream kept = nullptr;  // as a server has its stream for as long as it runs
    CUstream stream = kept != nullptr ? kept : device.NewStream();
    kept = nullptr;
    LaunchOnce(device, stream);
    Json result;
    if (what == "task") {
      result = RunTask(device, stream, command);
    } else {
      double end = command.contains("seconds") ? Seconds() + command["seconds"].get<double>() : 0;
      result = RunContinuously(device, stream, command.at("kernel_us"),
                               [&] { return end == 0 ? commands.Interrupted() : Seconds() >= end; });
    }
    if (command.value("keep", false)) {
      kept = stream;
    } else {
      device.driver().cuStreamDestroy(stream);
    }
    return result;
  }
  if (what == "ahead") {
    LaunchAhead(device, command.at("kernel_us"), command.at("count_file"));
    return Json::object();
  }
  if (what == "two_streams") return RunTwoStreams(device, command);
  if (what == "allocate") return RunAllocate(device, command);
  if (what == "wakes") {
    const Wakes wakes = MeasureWakes(command.at("rate_hz"), command.at("seconds"));
    return {{"timer_us", wakes.timer_us}, {"thread_us", wakes.thread_us}};
  }
  if (what == "suspend") return RunSuspend(device, command);
  if (what == "stop") return Json::object();
  throw std::runtime_error("unknown command " + what);
}

}  // namespace
}  // namespace xsched::bench

int main(int argc, char** argv) {
  using xsched::bench::Json;
  // Never destroyed, because its reader may wait for input until the end of the process.
  auto& commands = *new xsched::bench::Commands(argc, argv);
  int status = 0;
  bool launches_ahead = false;
  auto answer = [](const Json& json) {
    std::printf("%s\n", json.dump().c_str());
    std::fflush(stdout);
  };
  try {
    xsched::bench::Device device;
    while (true) {
      try {
        std::optional<Json> command = commands.Next();
        if (!command) break;
        answer({{"ok", xsched::bench::Run(device, commands, *command)}});
        launches_ahead = launches_ahead || command->value("do", "") == "ahead";
        status = 0;
      } catch (const std::exception& error) {
        answer({{"error", error.what()}});
        status = 1;
      }
    }
    // The device and the driver must outlive the thread, which cannot be stopped.
    if (launches_ahead) std::_Exit(status);
  } catch (const std::exception& error) {
    answer({{"error", error.what()}});
    return 1;
  }
  return status;
}
