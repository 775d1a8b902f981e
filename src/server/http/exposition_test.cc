#include "server/http/exposition.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <regex>
#include <sstream>

namespace xsched::server::http {
namespace {

TEST(Exposition, writes_each_type_as_openmetrics_names_it) {
  Exposition page(Format::kOpenMetrics);
  page.Begin("x_time_seconds", MetricType::kCounter, "seconds", "Time.");
  page.Put({{"uid", "7"}, {"process", "a b"}}, 0.25);
  page.Begin("x_queues", MetricType::kGauge, "", "Queues.");
  page.Put({}, 3);
  page.Begin("x_build", MetricType::kInfo, "", "Version.");
  page.Put({{"version", "2.0"}}, 1);
  page.Begin("x_wait_seconds", MetricType::kHistogram, "seconds", "Waits.");
  page.PutHistogram({{"uid", "7"}}, std::vector<double>{0.5, 1}, std::vector<uint64_t>{1, 0, 2}, 7.5);
  EXPECT_EQ(page.Finish(),
            "# HELP x_time_seconds Time.\n"
            "# TYPE x_time_seconds counter\n"
            "# UNIT x_time_seconds seconds\n"
            "x_time_seconds_total{uid=\"7\",process=\"a b\"} 0.25\n"
            "# HELP x_queues Queues.\n"
            "# TYPE x_queues gauge\n"
            "x_queues 3\n"
            "# HELP x_build Version.\n"
            "# TYPE x_build info\n"
            "x_build_info{version=\"2.0\"} 1\n"
            "# HELP x_wait_seconds Waits.\n"
            "# TYPE x_wait_seconds histogram\n"
            "# UNIT x_wait_seconds seconds\n"
            "x_wait_seconds_bucket{uid=\"7\",le=\"0.5\"} 1\n"
            "x_wait_seconds_bucket{uid=\"7\",le=\"1.0\"} 1\n"
            "x_wait_seconds_bucket{uid=\"7\",le=\"+Inf\"} 3\n"
            "x_wait_seconds_sum{uid=\"7\"} 7.5\n"
            "x_wait_seconds_count{uid=\"7\"} 3\n"
            "# EOF\n");
}

TEST(Exposition, prometheus_own_format_names_samples_and_has_no_unit_no_info_and_no_end) {
  Exposition page(Format::kPrometheus);
  page.Begin("x_time_seconds", MetricType::kCounter, "seconds", "Time.");
  page.Put({}, 2);
  page.Begin("x_build", MetricType::kInfo, "", "Version.");
  page.Put({{"version", "2.0"}}, 1);
  EXPECT_EQ(page.Finish(),
            "# HELP x_time_seconds_total Time.\n"
            "# TYPE x_time_seconds_total counter\n"
            "x_time_seconds_total 2\n"
            "# HELP x_build_info Version.\n"
            "# TYPE x_build_info gauge\n"
            "x_build_info{version=\"2.0\"} 1\n");
}

TEST(Exposition, the_clients_preference_decides_and_others_get_openmetrics) {
  const auto open_metrics = Format::kOpenMetrics;
  const auto prometheus = Format::kPrometheus;
  for (const auto& [accept, wanted] : std::vector<std::pair<const char*, Format>>{
           {"", open_metrics},
           {"*/*", open_metrics},
           {"text/html", open_metrics},
           {"text/plain", prometheus},
           {"text/plain;version=0.0.4;q=0.1", prometheus},
           {"text/plain; version=9", open_metrics},
           {"application/openmetrics-text", open_metrics},
           {"application/openmetrics-text;version=9,text/plain;version=0.0.4", prometheus},
           {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
            "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            open_metrics},
           {"application/openmetrics-text;q=0.1 , TEXT/Plain ; Q=0.2", prometheus},
           {"application/openmetrics-text;q=0,text/plain;q=0.2", prometheus},
           {"text/plain;q=nan", open_metrics},
           {";;;,,q=,text/plain;q", open_metrics}}) {
    EXPECT_EQ(FormatFor(accept), wanted) << accept;
  }
}

TEST(Exposition, a_label_keeps_its_text_where_it_is_harmless) {
  EXPECT_EQ(EscapedLabel("train.py"), "train.py");
  EXPECT_EQ(EscapedLabel("模型 é"), "模型 é");
  EXPECT_EQ(EscapedLabel("say \"hi\"\\\n"), "say \\\"hi\\\"\\\\\\n");
  EXPECT_EQ(EscapedLabel("a\rb\x1b\x7f"), "a?b??");
  EXPECT_EQ(EscapedLabel(std::string("a\0b", 3)), "a?b");
}

TEST(Exposition, what_is_no_utf_8_in_a_label_is_replaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(EscapedLabel("\xff"), bad);
  EXPECT_EQ(EscapedLabel("a\xc3"), "a" + bad);
  EXPECT_EQ(EscapedLabel("\xc0\x80"), bad + bad) << "longer than it need be";
  EXPECT_EQ(EscapedLabel("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(EscapedLabel("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond the last character";
}

TEST(Exposition, a_long_label_is_cut_between_characters) {
  const std::string cut = EscapedLabel(std::string(10'000, 'x'));
  EXPECT_EQ(cut, std::string(256, 'x'));
  std::string two_bytes_each(1, 'x');
  for (int i = 0; i < 1000; ++i) two_bytes_each += "é";
  EXPECT_EQ(EscapedLabel(two_bytes_each).size() % 2, 1u);
}

TEST(Exposition, no_label_can_break_the_text) {
  // A sample is one line: a name, labels between quotes, in which only these three are escaped, and a number.
  const std::regex sample(R"(x\{l="(?:[^"\\]|\\["\\n])*"\} 1)");
  std::mt19937 random(1);
  const std::string nasty = std::string("\"\\\n{}=,# \r\t\xff\xc3\xa9") + '\0';
  for (int i = 0; i < 3000; ++i) {
    std::string value;
    for (size_t length = random() % 300; length > 0; --length)
      value += random() % 2 == 0 ? nasty[random() % nasty.size()] : static_cast<char>(random());
    Exposition page(Format::kOpenMetrics);
    page.Begin("x", MetricType::kGauge, "", "X.");
    page.Put({{"l", value}}, 1);
    std::istringstream lines(page.Finish());
    std::vector<std::string> read;
    for (std::string line; std::getline(lines, line);) read.push_back(line);
    ASSERT_EQ(read.size(), 4u);
    EXPECT_TRUE(std::regex_match(read[2], sample)) << read[2];
  }
}

TEST(Exposition, writes_every_number) {
  Exposition page(Format::kPrometheus);
  page.Begin("x", MetricType::kGauge, "", "X.");
  page.Put({}, std::numeric_limits<double>::infinity());
  page.Put({}, -std::numeric_limits<double>::infinity());
  page.Put({}, std::numeric_limits<double>::quiet_NaN());
  page.Put({}, 1e300);
  page.Put({}, 123456789.123456789);
  EXPECT_TRUE(page.Finish().ends_with("x +Inf\nx -Inf\nx NaN\nx 1e+300\nx 123456789.12345679\n"));
}

}  // namespace
}  // namespace xsched::server::http
