// For tests of tracks: keeps what a track puts.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "server/recording/recorded_event.h"

namespace xsched::server::testing {

class PutEvents : public RecordSink {
 public:
  void Put(const RecordedEvent& event) override { events_.push_back(event); }

  // Takes the next event. It is returned if it is a T.
  template <typename T>
  std::optional<T> Take() {
    if (events_.empty()) return std::nullopt;
    const RecordedEvent event = events_.front();
    events_.erase(events_.begin());
    const T* wanted = std::get_if<T>(&event);
    return wanted == nullptr ? std::nullopt : std::optional<T>(*wanted);
  }

 protected:
  ~PutEvents() = default;

  std::vector<RecordedEvent> events_;
};

}  // namespace xsched::server::testing
