// Writes metrics as text, in the two formats that Prometheus reads: OpenMetrics 1.0, and Prometheus' own
// 0.0.4. It knows nothing of XSched.
//
// Whatever is in a label's value, the text stays valid.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xsched::server::http {

enum class Format : uint8_t { kOpenMetrics, kPrometheus };

// By the request's header Accept: Prometheus' format if the client prefers it, and OpenMetrics for everybody
// else.
Format FormatFor(std::string_view accept);
const char* ContentType(Format format);

enum class MetricType : uint8_t { kCounter, kGauge, kHistogram, kInfo };
const char* NameOf(MetricType type);

using Labels = std::vector<std::pair<std::string_view, std::string>>;

class Exposition {
 public:
  explicit Exposition(Format format) : format_(format) {}

  // The samples that follow are of this metric. `name`: without _total and _info. `unit`: the end of the
  // name; "": it has none.
  void Begin(std::string_view name, MetricType type, std::string_view unit, std::string_view help);
  // One sample. An info has the value 1.
  void Put(const Labels& labels, double value);
  // A histogram's samples. `counts`: in each bucket alone, the last one without a bound.
  void PutHistogram(const Labels& labels, std::span<const double> bounds, std::span<const uint64_t> counts,
                    double sum);
  // The whole text. Nothing may follow.
  std::string Finish();

 private:
  void PutSample(std::string_view suffix, const Labels& labels, std::string_view bound, double value);

  Format format_;
  std::string name_;
  MetricType type_ = MetricType::kGauge;
  std::string text_;
};

// The value as it stands between quotes: valid UTF-8, without control characters, of bounded length.
std::string EscapedLabel(std::string_view value);

}  // namespace xsched::server::http
