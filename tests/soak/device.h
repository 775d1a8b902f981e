// A platform as the soak test's client uses it. One file for each platform implements OpenDevice.
#pragma once

#include <cstdint>
#include <memory>

#include "page.h"

namespace soak {

struct Options {
  int priority = 0;
  int level = 1;          // software device
  bool native = false;    // software device: without XSched; other platforms: run without the shim
  double seconds = 10;    // the client's lifetime
  bool is_child = false;  // forked from a client
};

class Device {
 public:
  virtual ~Device() = default;

  // Appends a command to the main queue. Page::done counts it once the device has finished it.
  virtual void Launch(uint32_t microseconds) = 0;
  // Waits for the main queue in one of several ways, and checks the results.
  virtual void Synchronize(uint32_t way) = 0;
  // Makes a queue, uses it, and destroys it.
  virtual void UseAnotherQueue() = 0;
  // Called every 10 ms by a separate thread.
  virtual void Observe() {}
  // True if its commands use the processor. Then their duration is not fixed.
  virtual bool uses_processor() const { return false; }
  // True if a forked child of a program that has used the device may use it as well.
  virtual bool works_after_fork() const { return false; }
};

std::unique_ptr<Device> OpenDevice(Page& page, const Options& options);

// Measures how long it takes to make a queue (Page::longest_create_ns), without the time for which the thread
// waited for a processor or the machine was late.
class Making {
 public:
  explicit Making(Page& page);
  ~Making();
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  Page& page_;
  uint64_t began_;
  uint64_t late_;
  uint64_t queued_;
};

// Counts and prints a wrong result, and ends the process.
[[noreturn]] void Fail(Page& page, const char* what, long got, long wanted);

}  // namespace soak
