#include "cli/trace/device_share.h"

#include <fmt/format.h>

namespace xsched::cli {
namespace {

std::string SliceText(Duration slice) {
  const auto us = slice / std::chrono::microseconds(1);
  return us % 1000 == 0 ? fmt::format("{} ms", us / 1000) : fmt::format("{} µs", us);
}

}  // namespace

void DeviceShare::HadSlice(TrackEvents& events, Duration from, Duration to, Duration slice) {
  if (slices_ == 0) slices_ = events.AddTrack(process_, fmt::format("time slice on {}", device_));
  events.Begin(slices_, from, SliceText(slice));
  events.End(slices_, to);
}

void DeviceShare::HadMemory(TrackEvents& events, Duration from, Duration to, int64_t used, int64_t limit) {
  using Unit = TrackEvents::Unit;
  if (memory_ == 0) {
    memory_ = events.AddCounter(process_, fmt::format("memory of {}", device_), Unit::kBytes);
    limit_ = events.AddCounter(process_, fmt::format("limit of memory of {}", device_), Unit::kBytes);
  } else if (from > had_until_) {
    Finish(events);
  }
  events.Count(memory_, from, used);
  events.Count(limit_, from, limit);
  had_until_ = to;
}

void DeviceShare::Finish(TrackEvents& events) {
  if (memory_ == 0) return;
  events.Count(memory_, had_until_, 0);
  events.Count(limit_, had_until_, 0);
}

}  // namespace xsched::cli
