#include "server/http/exposition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace xsched::server::http {
namespace {

constexpr size_t kMaxLabel = 256;  // bytes of a value
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Takes what comes before `separator` off the text.
std::string_view Next(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = Trimmed(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return part;
}

bool Is(std::string_view text, std::string_view lower_case) {
  return std::equal(text.begin(), text.end(), lower_case.begin(), lower_case.end(),
                    [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; });
}

struct Accepted {
  double open_metrics = 0;
  double prometheus = 0;
};

// One entry of Accept, as "text/plain;version=0.0.4;q=0.5".
void Take(std::string_view entry, Accepted& accepted) {
  const std::string_view type = Next(entry, ';');
  std::string_view version;
  double quality = 1;
  while (!entry.empty()) {
    std::string_view value = Next(entry, ';');
    const std::string_view name = Next(value, '=');
    if (Is(name, "version")) version = value;
    if (!Is(name, "q")) continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), quality);
    if (error != std::errc() || !(quality >= 0 && quality <= 1)) quality = 0;
  }
  if (Is(type, "application/openmetrics-text") &&
      (version.empty() || version == "1.0.0" || version == "0.0.1"))
    accepted.open_metrics = std::max(accepted.open_metrics, quality);
  if (Is(type, "text/plain") && (version.empty() || version == "0.0.4"))
    accepted.prometheus = std::max(accepted.prometheus, quality);
}

// The number of bytes of the character at the beginning; 0: it is not valid UTF-8.
size_t CharacterAt(std::string_view text) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than it need be, a surrogate, or beyond the last character.
  const unsigned char second = byte(1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? 0 : length;
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

// With a fraction, as both formats write the bounds of buckets.
std::string BoundText(double bound) {
  std::string text = NumberText(bound);
  if (text.find_first_of(".eIN") == std::string::npos) text += ".0";
  return text;
}

}  // namespace

Format FormatFor(std::string_view accept) {
  Accepted accepted;
  while (!accept.empty()) Take(Next(accept, ','), accepted);
  return accepted.prometheus > accepted.open_metrics ? Format::kPrometheus : Format::kOpenMetrics;
}

const char* ContentType(Format format) {
  return format == Format::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                        : "text/plain; version=0.0.4; charset=utf-8";
}

const char* NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kInfo:
      return "info";
  }
  return "unknown";
}

std::string EscapedLabel(std::string_view value) {
  std::string escaped;
  while (!value.empty() && escaped.size() < kMaxLabel) {
    const size_t length = CharacterAt(value);
    const std::string_view character = value.substr(0, std::max<size_t>(length, 1));
    if (length == 0) {
      escaped += kReplacement;
    } else if (character == "\n") {
      escaped += "\\n";
    } else if (character == "\"" || character == "\\") {
      escaped += '\\';
      escaped += character;
    } else if (length == 1 && std::iscntrl(static_cast<unsigned char>(value[0])) != 0) {
      escaped += '?';
    } else {
      escaped += character;
    }
    value.remove_prefix(character.size());
  }
  return escaped;
}

void Exposition::Begin(std::string_view name, MetricType type, std::string_view unit, std::string_view help) {
  name_ = name;
  type_ = type;
  std::string family = name_;
  const char* type_name = NameOf(type);
  if (format_ == Format::kPrometheus) {
    // There, a family has the name of its samples, and there is no info.
    if (type == MetricType::kCounter) family += "_total";
    if (type == MetricType::kInfo) {
      family += "_info";
      type_name = "gauge";
    }
  }
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", family, help, family, type_name);
  if (format_ == Format::kOpenMetrics && !unit.empty()) text_ += fmt::format("# UNIT {} {}\n", family, unit);
}

void Exposition::Put(const Labels& labels, double value) {
  PutSample(type_ == MetricType::kCounter ? "_total"
            : type_ == MetricType::kInfo  ? "_info"
                                          : "",
            labels, "", value);
}

void Exposition::PutHistogram(const Labels& labels, std::span<const double> bounds,
                              std::span<const uint64_t> counts, double sum) {
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    PutSample("_bucket", labels, i < bounds.size() ? BoundText(bounds[i]) : "+Inf",
              static_cast<double>(count));
  }
  PutSample("_sum", labels, "", sum);
  PutSample("_count", labels, "", static_cast<double>(count));
}

void Exposition::PutSample(std::string_view suffix, const Labels& labels, std::string_view bound,
                           double value) {
  text_ += name_;
  text_ += suffix;
  char separator = '{';
  const auto put = [&](std::string_view name, std::string_view text) {
    text_ += separator;
    text_ += name;
    text_ += "=\"";
    text_ += EscapedLabel(text);
    text_ += '"';
    separator = ',';
  };
  for (const auto& [name, text] : labels) put(name, text);
  if (!bound.empty()) put("le", bound);
  if (separator == ',') text_ += '}';
  text_ += ' ';
  text_ += NumberText(value);
  text_ += '\n';
}

std::string Exposition::Finish() {
  if (format_ == Format::kOpenMetrics) text_ += "# EOF\n";
  return std::move(text_);
}

}  // namespace xsched::server::http
