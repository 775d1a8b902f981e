#include "cli/trace/track_events.h"

namespace xsched::cli {
namespace {

// ---- the wire format of Protocol Buffers: only what a trace needs ----

enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

void AddVarint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}
void AddNumber(std::string& to, uint32_t field, uint64_t value) {
  AddVarint(to, field << 3 | kVarint);
  AddVarint(to, value);
}
void AddBytes(std::string& to, uint32_t field, std::string_view bytes) {
  AddVarint(to, field << 3 | kBytes);
  AddVarint(to, bytes.size());
  to.append(bytes);
}

void AddFixed(std::string& to, uint32_t field, uint64_t value) {
  AddVarint(to, field << 3 | kFixed64);
  for (int byte = 0; byte < 8; ++byte) to.push_back(static_cast<char>(value >> (8 * byte)));
}

// ---- the fields ----

namespace trace {
constexpr uint32_t kPacket = 1;
}
namespace packet {
constexpr uint32_t kTimestamp = 8;
constexpr uint32_t kSequence = 10;
constexpr uint32_t kEvent = 11;
constexpr uint32_t kDescriptor = 60;
}  // namespace packet
namespace descriptor {
constexpr uint32_t kUuid = 1;
constexpr uint32_t kName = 2;
constexpr uint32_t kProcess = 3;
constexpr uint32_t kParent = 5;
constexpr uint32_t kCounter = 8;
}  // namespace descriptor
namespace process {
constexpr uint32_t kPid = 1;
constexpr uint32_t kName = 6;
}  // namespace process
namespace counter {
constexpr uint32_t kUnit = 3;
}
namespace event {
constexpr uint32_t kNotes = 4;
constexpr uint32_t kType = 9;
constexpr uint32_t kTrack = 11;
constexpr uint32_t kName = 23;
constexpr uint32_t kCategories = 22;
constexpr uint32_t kCounterValue = 30;
constexpr uint32_t kArrows = 47;
enum Type : uint32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
}  // namespace event
namespace note {
constexpr uint32_t kInteger = 4;
constexpr uint32_t kText = 6;
constexpr uint32_t kName = 10;
}  // namespace note

// All packets are of one writer.
constexpr uint64_t kOnlySequence = 1;

std::string EventOf(event::Type type, uint64_t track, Notes notes = {}) {
  std::string event;
  AddNumber(event, event::kType, type);
  AddNumber(event, event::kTrack, track);
  for (const Note& note : notes) {
    std::string bytes;
    AddBytes(bytes, note::kName, note.name);
    if (const auto* number = std::get_if<int64_t>(&note.value)) {
      AddNumber(bytes, note::kInteger, static_cast<uint64_t>(*number));
    } else {
      AddBytes(bytes, note::kText, std::get<std::string>(note.value));
    }
    AddBytes(event, event::kNotes, bytes);
  }
  return event;
}

}  // namespace

TrackEvents::Track TrackEvents::AddProcess(int32_t pid, const std::string& name) {
  std::string process;
  AddNumber(process, process::kPid, static_cast<uint64_t>(int64_t{pid}));
  AddBytes(process, process::kName, name);
  std::string kind;
  AddBytes(kind, descriptor::kProcess, process);
  return Describe(0, "", kind);
}

TrackEvents::Track TrackEvents::AddTrack(Track parent, const std::string& name) {
  return Describe(parent, name, "");
}

TrackEvents::Track TrackEvents::AddCounter(Track parent, const std::string& name, Unit unit) {
  std::string of_counter;
  if (unit != Unit::kNone) AddNumber(of_counter, counter::kUnit, static_cast<uint64_t>(unit));
  std::string kind;
  AddBytes(kind, descriptor::kCounter, of_counter);
  return Describe(parent, name, kind);
}

void TrackEvents::Begin(Track track, Duration at, const std::string& name, Arrow arrow) {
  std::string event = EventOf(event::kBegin, track);
  AddBytes(event, event::kName, name);
  if (arrow != 0) AddFixed(event, event::kArrows, arrow);
  Event(at, event);
}

void TrackEvents::Begin(Track track, Duration at, const std::string& name, const std::string& category,
                        std::span<const Arrow> arrows) {
  std::string event = EventOf(event::kBegin, track);
  AddBytes(event, event::kName, name);
  if (!category.empty()) AddBytes(event, event::kCategories, category);
  for (const Arrow arrow : arrows) AddFixed(event, event::kArrows, arrow);
  Event(at, event);
}

void TrackEvents::End(Track track, Duration at, Notes notes) {
  Event(at, EventOf(event::kEnd, track, notes));
}

void TrackEvents::Instant(Track track, Duration at, const std::string& name, Notes notes, Arrow arrow) {
  std::string event = EventOf(event::kInstant, track, notes);
  AddBytes(event, event::kName, name);
  if (arrow != 0) AddFixed(event, event::kArrows, arrow);
  Event(at, event);
}

void TrackEvents::Count(Track track, Duration at, int64_t value) {
  std::string event = EventOf(event::kCounter, track);
  AddNumber(event, event::kCounterValue, static_cast<uint64_t>(value));
  Event(at, event);
}

TrackEvents::Track TrackEvents::Describe(Track parent, const std::string& name, const std::string& kind) {
  const Track track = ++last_;
  std::string descriptor;
  AddNumber(descriptor, descriptor::kUuid, track);
  if (!name.empty()) AddBytes(descriptor, descriptor::kName, name);
  if (parent != 0) AddNumber(descriptor, descriptor::kParent, parent);
  descriptor += kind;
  std::string packet;
  AddBytes(packet, packet::kDescriptor, descriptor);
  Write(packet);
  return track;
}

void TrackEvents::Event(Duration at, const std::string& event) {
  std::string packet;
  AddNumber(packet, packet::kTimestamp, static_cast<uint64_t>((origin_ + at).count()));
  AddBytes(packet, packet::kEvent, event);
  Write(packet);
}

void TrackEvents::Write(const std::string& packet) {
  std::string bytes = packet;
  AddNumber(bytes, packet::kSequence, kOnlySequence);
  std::string whole;
  AddBytes(whole, trace::kPacket, bytes);
  out_ << whole;
}

}  // namespace xsched::cli
