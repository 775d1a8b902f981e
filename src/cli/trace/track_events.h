// Writes a trace in the format of Perfetto (TrackEvent), which ui.perfetto.dev and its tools open. The
// numbers of fields are those of its published .proto files.
//
// A trace is a list of packets: a description of a track, or an event on it. Packets need no order in time.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"

namespace xsched::cli {

// What an event says beside its name.
struct Note {
  std::string_view name;
  std::variant<int64_t, std::string> value;
};
using Notes = std::initializer_list<Note>;

class TrackEvents {
 public:
  using Track = uint64_t;
  // From the first event that has it to the second.
  using Arrow = uint64_t;

  explicit TrackEvents(std::ostream& out) : out_(out) {}

  // A process, whose tracks are shown together.
  Track AddProcess(int32_t pid, const std::string& name);
  Track AddTrack(Track parent, const std::string& name);
  // Of the numbers of a counter, as Perfetto numbers them.
  enum class Unit : uint32_t { kNone = 0, kBytes = 3 };
  // A track of numbers; `parent` 0: of its own.
  Track AddCounter(Track parent, const std::string& name, Unit unit = Unit::kNone);
  Arrow AddArrow() { return ++last_arrow_; }

  // What times are counted from; 0 if it is not set before the first event.
  void SetOrigin(Duration origin) { origin_ = origin; }

  // Between Begin and End, the track shows `name`.
  // `arrow`: one that begins, or ends, at this event; 0: none.
  void Begin(Track track, Duration at, const std::string& name, Arrow arrow = 0);
  void Begin(Track track, Duration at, const std::string& name, const std::string& category,
             std::span<const Arrow> arrows);
  void End(Track track, Duration at, Notes notes = {});
  void Instant(Track track, Duration at, const std::string& name, Notes notes = {}, Arrow arrow = 0);
  void Count(Track track, Duration at, int64_t value);

 private:
  Track Describe(Track parent, const std::string& name, const std::string& kind);
  void Event(Duration at, const std::string& event);
  void Write(const std::string& packet);

  std::ostream& out_;
  Track last_ = 0;
  Arrow last_arrow_ = 0;
  Duration origin_{};
};

}  // namespace xsched::cli
