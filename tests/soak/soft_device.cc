// The soak test's client on the software device: commands end in the order in which they were launched.
#include "device.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace soak {
namespace {

// A device's thread does not outlive a fork: the child has a device of its own.
XDeviceId DeviceOf(const Options& options) { return options.is_child ? 2 : 1; }

class Queue {
 public:
  // `done`: counts what has finished; null: nobody does.
  Queue(Page& page, const Options& options, std::atomic<uint64_t>* done) : page_(page), done_(done) {
    Making making(page_);
    Check(SoftQueueCreate(&hwq_, DeviceOf(options), kPreemptLevelInterrupt), "SoftQueueCreate");
    if (!options.native) {
      Check(XQueueCreate(&xqueue_, hwq_, static_cast<XPreemptLevel>(options.level), kQueueCreateFlagNone),
            "XQueueCreate");
      Check(XHintPriority(xqueue_, options.priority), "XHintPriority");
    }
  }
  ~Queue() {
    if (xqueue_ != 0) XQueueDestroy(xqueue_);
    HwQueueDestroy(hwq_);
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void Launch(uint32_t microseconds) {
    ++launched_;
    auto* command = new Ended{this, launched_};
    Check(SoftLaunch(
              hwq_, microseconds, [](void* data) { static_cast<Ended*>(data)->Tell(); }, command),
          "SoftLaunch");
  }
  void Synchronize() {
    Check(SoftSynchronize(hwq_), "SoftSynchronize");
    if (ended_ != launched_)
      Fail(page_, "commands ended", static_cast<long>(ended_), static_cast<long>(launched_));
  }

 private:
  struct Ended {
    Queue* queue;
    uint64_t number;
    void Tell() {
      const uint64_t before = queue->ended_.fetch_add(1);
      if (before + 1 != number)
        Fail(queue->page_, "order of commands", static_cast<long>(number), static_cast<long>(before + 1));
      if (queue->done_ != nullptr) ++*queue->done_;
      delete this;
    }
  };
  void Check(XResult result, const char* what) {
    if (result != kXSchedSuccess) Fail(page_, what, result, kXSchedSuccess);
  }

  Page& page_;
  std::atomic<uint64_t>* done_;
  HwQueueHandle hwq_ = 0;
  XQueueHandle xqueue_ = 0;
  uint64_t launched_ = 0;
  std::atomic<uint64_t> ended_{0};
};

class SoftDevice : public Device {
 public:
  SoftDevice(Page& page, const Options& options)
      : page_(page), options_(options), queue_(page, options, &page.done) {}

  void Launch(uint32_t microseconds) override { queue_.Launch(microseconds); }
  void Synchronize(uint32_t) override { queue_.Synchronize(); }
  void UseAnotherQueue() override {
    Queue other(page_, options_, nullptr);
    for (int i = 0; i < 5; ++i) other.Launch(200);
    other.Synchronize();
  }
  bool works_after_fork() const override { return true; }

 private:
  Page& page_;
  Options options_;
  Queue queue_;
};

}  // namespace

std::unique_ptr<Device> OpenDevice(Page& page, const Options& options) {
  return std::make_unique<SoftDevice>(page, options);
}

}  // namespace soak
