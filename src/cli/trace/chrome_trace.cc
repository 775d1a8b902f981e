#include "cli/trace/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

using ChromeJson = nlohmann::json;

// A trace of more events takes gigabytes, and nothing shows it.
constexpr uint64_t kMostEvents = 20'000'000;
// The sum of three of them does not overflow.
constexpr Duration kLatest = std::chrono::hours(95 * 365 * 24);
// Unix times of an earlier year were not measured: they count from something else.
constexpr Duration kEarliest = std::chrono::hours(30 * 365 * 24);

// Microseconds with a fraction, as they are written: a double has no nanoseconds of Unix times.
std::optional<Duration> FromMicroseconds(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  int64_t ns = 0;
  int decimals = -1;  // behind the point; -1: it has not come yet
  for (const char character : text) {
    if (character == '.' && decimals < 0) {
      decimals = 0;
    } else if (character < '0' || character > '9') {
      return std::nullopt;
    } else if (decimals < 3) {
      if (ns > kLatest.count() / 10) return std::nullopt;
      ns = ns * 10 + (character - '0');
      decimals += decimals >= 0 ? 1 : 0;
    }
  }
  for (int missing = 3 - std::max(decimals, 0); missing > 0; --missing) {
    if (ns > kLatest.count() / 10) return std::nullopt;
    ns *= 10;
  }
  return Duration(negative ? -ns : ns);
}

// What is of one event.
struct ChromeEvent {
  std::string phase, name, category, process, thread, id;
  std::optional<Duration> at, length;
  // Of its arguments.
  std::string argument_name, labels;
  std::optional<int64_t> allocated, device_type, device;
};

// nlohmann calls it for each piece of the file.
class ChromeReader final : public nlohmann::json_sax<ChromeJson> {
 public:
  explicit ChromeReader(const std::string& file) : file_(file) {}

  ChromeTrace Finish() &&;

  bool null() override { return Other(); }
  bool boolean(bool /*value*/) override { return Other(); }
  bool number_integer(number_integer_t value) override { return Number(value, std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<int64_t>(std::min<uint64_t>(value, std::numeric_limits<int64_t>::max())),
                  std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& /*value*/) override { return Other(); }
  bool start_object(size_t /*elements*/) override;
  bool key(string_t& key) override;
  bool end_object() override;
  bool start_array(size_t /*elements*/) override;
  bool end_array() override;
  bool parse_error(size_t position, const std::string& token, const ChromeJson::exception& error) override;

 private:
  static constexpr int kNowhere = std::numeric_limits<int>::max() - 2;

  [[noreturn]] void Fail(const std::string& what) const {
    throw CommandError(kExitFailed, fmt::format("{}: {}", file_, what));
  }
  [[noreturn]] void FailEvent(const std::string& what) const {
    Fail(fmt::format("event {}: {}", events_, what));
  }
  // Where the reader is.
  bool AtRoot() const { return depth_ == 1 && !is_array_; }
  bool InEvent() const { return depth_ == events_depth_ + 1; }
  bool InArguments() const { return depth_ == events_depth_ + 2 && event_key_ == "args"; }

  bool Other();
  bool Number(int64_t value, const std::string& text);
  void AddEvent();
  void AddMetadata();
  void AddSlice();
  void AddPoint();
  void AddArrowEnd();
  Duration At() const;
  ChromeTrace::Thread& ThreadOf() { return trace_.processes[event_.process].threads[event_.thread]; }
  uint32_t NumberOf(const std::string& name);

  const std::string& file_;
  ChromeTrace trace_;
  std::unordered_map<std::string, uint32_t> names_;
  std::unordered_map<std::string, uint64_t> arrows_;  // by category and number
  Duration base_{};
  int depth_ = 0;                // of the objects and lists that are open
  int events_depth_ = kNowhere;  // of the list of events, while it is open
  bool is_array_ = false;        // the whole file is the list of events
  bool has_events_ = false;
  std::string root_key_, event_key_, argument_key_;
  ChromeEvent event_;
  uint64_t events_ = 0;
};

// ---- pieces ----

bool ChromeReader::start_object(size_t /*elements*/) {
  ++depth_;
  if (!InEvent()) return true;
  if (++events_ > kMostEvents) Fail(fmt::format("more than {} events", kMostEvents));
  event_ = {};
  event_key_.clear();
  argument_key_.clear();
  return true;
}

bool ChromeReader::end_object() {
  if (InEvent()) AddEvent();
  --depth_;
  return true;
}

bool ChromeReader::start_array(size_t /*elements*/) {
  if (depth_ == events_depth_) Other();
  ++depth_;
  if (depth_ == 1) is_array_ = true;
  if (is_array_ ? depth_ == 1 : depth_ == 2 && root_key_ == "traceEvents") {
    events_depth_ = depth_;
    has_events_ = true;
  }
  return true;
}

bool ChromeReader::end_array() {
  if (depth_ == events_depth_) events_depth_ = kNowhere;
  --depth_;
  return true;
}

bool ChromeReader::key(string_t& key) {
  if (AtRoot()) {
    root_key_ = std::move(key);
  } else if (InEvent()) {
    event_key_ = std::move(key);
  } else if (InArguments()) {
    argument_key_ = std::move(key);
  }
  return true;
}

// A value that nothing is read from.
bool ChromeReader::Other() {
  if (depth_ == 0) Fail("no trace: neither an object nor a list of events");
  if (depth_ == events_depth_) {
    ++events_;
    FailEvent("not a JSON object");
  }
  return true;
}

bool ChromeReader::Number(int64_t value, const std::string& text) {
  if (AtRoot() && root_key_ == "baseTimeNanoseconds") {
    base_ = Duration(value);
    if (base_ < Duration::zero() || base_ > kLatest) Fail("baseTimeNanoseconds is no Unix time");
  } else if (InEvent()) {
    if (event_key_ == "ts" || event_key_ == "dur") {
      const std::optional<Duration> time = FromMicroseconds(text);
      if (!time) FailEvent(fmt::format("{} is no time in microseconds", event_key_));
      (event_key_ == "ts" ? event_.at : event_.length) = time;
    } else if (event_key_ == "pid") {
      event_.process = text;
    } else if (event_key_ == "tid") {
      event_.thread = text;
    } else if (event_key_ == "id") {
      event_.id = text;
    }
  } else if (InArguments()) {
    if (argument_key_ == "Total Allocated") event_.allocated = value;
    if (argument_key_ == "Device Type") event_.device_type = value;
    if (argument_key_ == "Device Id") event_.device = value;
  } else {
    return Other();
  }
  return true;
}

bool ChromeReader::number_float(number_float_t value, const string_t& text) {
  // As it is written, unless that is in powers of ten.
  if (text.find_first_of("eE") == string_t::npos) return Number(0, text);
  if (!(std::abs(value) < 1e18)) return Number(0, "");
  return Number(0, fmt::format("{:.3f}", value));
}

bool ChromeReader::string(string_t& value) {
  std::string* place = nullptr;
  if (InEvent()) {
    if (event_key_ == "ts" || event_key_ == "dur")
      FailEvent(fmt::format("{} is no time in microseconds", event_key_));
    place = event_key_ == "ph"     ? &event_.phase
            : event_key_ == "name" ? &event_.name
            : event_key_ == "cat"  ? &event_.category
            : event_key_ == "pid"  ? &event_.process
            : event_key_ == "tid"  ? &event_.thread
            : event_key_ == "id"   ? &event_.id
                                   : nullptr;
  } else if (InArguments()) {
    place = argument_key_ == "name"     ? &event_.argument_name
            : argument_key_ == "labels" ? &event_.labels
                                        : nullptr;
  } else {
    return Other();
  }
  if (place != nullptr) *place = std::move(value);
  return true;
}

bool ChromeReader::parse_error(size_t position, const std::string& /*token*/,
                               const ChromeJson::exception& /*error*/) {
  if (position <= 1) Fail("empty, or no JSON");
  Fail(fmt::format("no JSON at byte {} (in or behind event {})", position, events_));
}

// ---- events ----

void ChromeReader::AddEvent() {
  if (event_.phase == "X") {
    AddSlice();
  } else if (event_.phase == "M") {
    AddMetadata();
  } else if (event_.phase == "s" || event_.phase == "t" || event_.phase == "f") {
    AddArrowEnd();
  } else if (event_.phase == "i" || event_.phase == "I") {
    AddPoint();
  }
}

void ChromeReader::AddMetadata() {
  ChromeTrace::Process& process = trace_.processes[event_.process];
  if (event_.name == "process_name") process.name = std::move(event_.argument_name);
  if (event_.name == "process_labels") process.label = std::move(event_.labels);
  if (event_.name == "thread_name") process.threads[event_.thread].name = std::move(event_.argument_name);
}

// A length below 0 means that the end was not seen.
void ChromeReader::AddSlice() {
  const Duration begin = At();
  const Duration length = std::max(event_.length.value_or(Duration::zero()), Duration::zero());
  ThreadOf().slices.push_back({begin, begin + length, NumberOf(event_.name), NumberOf(event_.category)});
}

void ChromeReader::AddPoint() {
  if (event_.allocated) {
    trace_.memory[{event_.device_type.value_or(0), event_.device.value_or(0)}].push_back(
        {At(), *event_.allocated});
  } else {
    ThreadOf().points.push_back({At(), NumberOf(event_.name)});
  }
}

void ChromeReader::AddArrowEnd() {
  const std::string both = event_.category + '\0' + event_.id;
  const uint64_t arrow = arrows_.try_emplace(both, arrows_.size() + 1).first->second;
  ThreadOf().arrows.push_back({At(), arrow});
}

Duration ChromeReader::At() const {
  if (!event_.at) FailEvent("ts is missing");
  return *event_.at;
}

uint32_t ChromeReader::NumberOf(const std::string& name) {
  const auto [known, is_new] = names_.try_emplace(name, static_cast<uint32_t>(trace_.names.size()));
  if (is_new) trace_.names.push_back(name);
  return known->second;
}

// Where times begin may be said behind the events.
ChromeTrace ChromeReader::Finish() && {
  if (!has_events_) Fail("no trace: it has no traceEvents");
  Duration latest{};
  const auto move = [&](Duration& time) { latest = std::max(latest, time += base_); };
  for (auto& [process_id, process] : trace_.processes) {
    for (auto& [thread_id, thread] : process.threads) {
      for (Slice& slice : thread.slices) {
        slice.end += base_;
        move(slice.begin);
      }
      for (ChromeTrace::Point& point : thread.points) move(point.at);
      for (ChromeTrace::ArrowEnd& arrow : thread.arrows) move(arrow.at);
    }
  }
  for (auto& [device, all] : trace_.memory) {
    for (ChromeTrace::Memory& memory : all) move(memory.at);
  }
  if (latest != Duration::zero() && latest < kEarliest) {
    Fail(
        "its times are no Unix times, and baseTimeNanoseconds is missing: so it cannot be laid beside the "
        "recording (PyTorch 2.4 and later write it)");
  }
  return std::move(trace_);
}

}  // namespace

ChromeTrace ReadChromeTrace(std::istream& input, const std::string& name) {
  constexpr int kGzip = 0x1f;
  if (input.peek() == kGzip) {
    throw CommandError(kExitFailed, fmt::format("{0}: it is compressed: unpack it first (gunzip {0})", name));
  }
  ChromeReader reader(name);
  ChromeJson::sax_parse(input, &reader);
  return std::move(reader).Finish();
}

}  // namespace xsched::cli
