// A platform as the soak test's client uses it. One file for each platform implements OpenDevice.
#pragma once

#include <cstdint>
#include <memory>

#include "page.h"

namespace soak {

struct Options {
  int priority = 0;
  int level = 1;          // software device
  bool native = false;    // software device: without XSched; the others are run without the shim
  double seconds = 10;    // for how long the client lives
  bool is_child = false;  // forked from a client
};

class Device {
 public:
  virtual ~Device() = default;

  // Appends a command to the main queue. Page::done counts it once the device has finished it.
  virtual void Launch(uint32_t microseconds) = 0;
  // Waits for the main queue in the way of this number, and checks what has been computed.
  virtual void Synchronize(uint32_t way) = 0;
  // Makes a queue, uses it, and destroys it.
  virtual void UseAnotherQueue() = 0;
  // Called every 10 ms by another thread than all else.
  virtual void Observe() {}
  // Are its commands work for the processor? They take as long as they take then.
  virtual bool uses_processor() const { return false; }
  // May a forked child of a program that has used the device use it, too?
  virtual bool works_after_fork() const { return false; }
};

std::unique_ptr<Device> OpenDevice(Page& page, const Options& options);

// Measures the making of a queue for Page::longest_create_ns, less what the machine kept us waiting for.
class Making {
 public:
  explicit Making(Page& page) : page_(page), began_(NowNs()), late_(page.late_ns) {}
  ~Making();
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  Page& page_;
  uint64_t began_;
  uint64_t late_;
};

// A wrong result: counted, printed, and the end of the process.
[[noreturn]] void Fail(Page& page, const char* what, long got, long wanted);

}  // namespace soak
