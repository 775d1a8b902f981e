#include "cli/trace/chrome_trace.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <sstream>

#include "cli/exit_codes.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ChromeTrace Read(const std::string& text) {
  std::istringstream in(text);
  return ReadChromeTrace(in, "FILE");
}

std::string ErrorOf(const std::string& text) {
  try {
    Read(text);
  } catch (const CommandError& error) {
    return error.what();
  }
  return "";
}

// "name category begin end" of each slice of a thread.
std::vector<std::string> SlicesOf(const ChromeTrace& trace, const char* process, const char* thread) {
  std::vector<std::string> slices;
  for (const Slice& slice : trace.processes.at(process).threads.at(thread).slices) {
    slices.push_back(fmt::format("{} {} {} {}", trace.names[slice.name], trace.names[slice.category],
                                 slice.begin.count(), slice.end.count()));
  }
  return slices;
}

TEST(ChromeTrace, times_count_from_the_base_wherever_it_is_said) {
  constexpr const char* kEvents =
      R"("traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":4,"tid":5,"ts":6351.204,"dur":12.5},
                        {"ph":"X","cat":"kernel","name":"gemm","pid":"Spans","tid":"a","ts":7000,"dur":1}])";
  constexpr const char* kBase = R"("baseTimeNanoseconds":1790000000000000000)";
  for (const std::string& text :
       {fmt::format("{{{},{}}}", kEvents, kBase), fmt::format("{{{},{}}}", kBase, kEvents)}) {
    const ChromeTrace trace = Read(text);
    EXPECT_THAT(SlicesOf(trace, "4", "5"),
                ElementsAre("aten::mm cpu_op 1790000000006351204 1790000000006363704"));
    EXPECT_THAT(SlicesOf(trace, "Spans", "a"),
                ElementsAre("gemm kernel 1790000000007000000 1790000000007001000"));
  }
}

TEST(ChromeTrace, times_without_a_base_are_unix_times_to_the_nanosecond) {
  const ChromeTrace trace = Read(
      R"([{"ph":"X","name":"a","pid":4,"tid":5,"ts":1790000000006351.204,"dur":0.001},
          {"ph":"X","name":"b","pid":4,"tid":5,"ts":1.5e15,"dur":-1},
          {"ph":"X","name":"c","pid":4,"tid":5,"ts":1790000000000001}])");
  EXPECT_THAT(SlicesOf(trace, "4", "5"), ElementsAre("a  1790000000006351204 1790000000006351205",
                                                     "b  1500000000000000000 1500000000000000000",
                                                     "c  1790000000000001000 1790000000000001000"));
}

TEST(ChromeTrace, names_of_processes_and_threads_are_read_and_what_is_not_shown_is_skipped) {
  const ChromeTrace trace = Read(
      R"({"deviceProperties":[{"id":0,"ts":1}],"traceEvents":[
          {"ph":"M","name":"process_name","pid":4,"tid":0,"args":{"name":"python"}},
          {"ph":"M","name":"process_labels","pid":4,"tid":0,"args":{"labels":"CPU"}},
          {"ph":"M","name":"thread_name","pid":4,"tid":5,"args":{"name":"thread 5: python","more":[{"name":"no"}]}},
          {"ph":"M","name":"process_sort_index","pid":4,"tid":0,"args":{"sort_index":5}},
          {"ph":"C","name":"of another kind","pid":9,"tid":5,"ts":1}
        ],"traceName":"t"})");
  ASSERT_EQ(trace.processes.size(), 1u);
  const ChromeTrace::Process& process = trace.processes.at("4");
  EXPECT_EQ(process.name, "python");
  EXPECT_EQ(process.label, "CPU");
  EXPECT_EQ(process.threads.at("5").name, "thread 5: python");
  EXPECT_THAT(trace.names, IsEmpty());
}

TEST(ChromeTrace, the_ends_of_an_arrow_have_one_number_and_those_of_another_category_another) {
  const ChromeTrace trace = Read(
      R"([{"ph":"s","cat":"ac2g","id":7,"pid":1,"tid":1,"ts":1790000000000001},
          {"ph":"s","cat":"fwdbwd","id":7,"pid":1,"tid":1,"ts":1790000000000002},
          {"ph":"f","cat":"ac2g","id":7,"pid":2,"tid":2,"ts":1790000000000003,"bp":"e"}])");
  const auto& from = trace.processes.at("1").threads.at("1").arrows;
  const auto& to = trace.processes.at("2").threads.at("2").arrows;
  ASSERT_EQ(from.size(), 2u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(from[0].arrow, to[0].arrow);
  EXPECT_NE(from[0].arrow, from[1].arrow);
  EXPECT_EQ(to[0].at, Duration(1790000000000003000));
}

TEST(ChromeTrace, allocations_are_a_counter_of_their_device_and_other_points_are_points) {
  const ChromeTrace trace = Read(
      R"([{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1790000000000001,"s":"t",
           "args":{"Total Allocated":4096,"Device Type":1,"Device Id":2,"Bytes":96}},
          {"ph":"i","name":"Iteration","pid":1,"tid":1,"ts":1790000000000002,"s":"g"}])");
  const auto& memory = trace.memory.at({1, 2});
  ASSERT_EQ(memory.size(), 1u);
  EXPECT_EQ(memory[0].bytes, 4096);
  EXPECT_EQ(memory[0].at, Duration(1790000000000001000));
  const auto& points = trace.processes.at("1").threads.at("1").points;
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(trace.names[points[0].name], "Iteration");
}

TEST(ChromeTrace, what_is_no_trace_is_an_error_with_its_place) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("FILE: empty, or no JSON"));
  EXPECT_THAT(ErrorOf("7"), HasSubstr("FILE: no trace"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("FILE: no trace: it has no traceEvents"));
  EXPECT_THAT(ErrorOf(R"({"traceEvents":{}})"), HasSubstr("it has no traceEvents"));
  EXPECT_THAT(ErrorOf(R"({"traceEvents":[{"ph":"X","ts":1},)"),
              HasSubstr("FILE: no JSON at byte 35 (in or behind event 1)"));
  EXPECT_THAT(ErrorOf(R"([{"ph":"M"},{"ph":"X"}])"), HasSubstr("FILE: event 2: ts is missing"));
  EXPECT_THAT(ErrorOf(R"([{"ph":"M"},5])"), HasSubstr("FILE: event 2: not a JSON object"));
  EXPECT_THAT(ErrorOf(R"([{"ph":"X","ts":"soon"}])"), HasSubstr("event 1: ts is no time in microseconds"));
  for (const char* time : {"1e300", "-1e300", "99999999999999999999", "9999999999999999.5"})
    EXPECT_THAT(ErrorOf(fmt::format(R"([{{"ph":"X","dur":{}}}])", time)),
                HasSubstr("event 1: dur is no time"))
        << time;
  EXPECT_THAT(ErrorOf(R"({"baseTimeNanoseconds":-1})"), HasSubstr("baseTimeNanoseconds is no Unix time"));
  EXPECT_THAT(ErrorOf("\x1f\x8b\x08"), HasSubstr("FILE: it is compressed: unpack it first (gunzip FILE)"));
}

TEST(ChromeTrace, times_that_count_from_something_unknown_are_refused) {
  EXPECT_THAT(ErrorOf(R"([{"ph":"X","name":"a","ts":6351.2,"dur":1}])"),
              HasSubstr("FILE: its times are no Unix times, and baseTimeNanoseconds is missing"));
}

}  // namespace
}  // namespace xsched::cli
