#include "cli/trace/chrome_tracks.h"

#include <gmock/gmock.h>

#include <sstream>

#include "cli/trace/testing/packets.h"

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;

// From 1 to 2 ms after 1,790,000,000 s of Unix time, from which the packets' times count.
std::vector<std::string> Show(const std::string& trace, ShownSlices* slices = nullptr) {
  constexpr Duration kFrom = std::chrono::seconds(1'790'000'000) + std::chrono::milliseconds(1);
  std::istringstream in(trace);
  std::ostringstream out;
  TrackEvents events(out);
  events.SetOrigin(std::chrono::milliseconds(1));
  const TrackEvents::Track known = events.AddProcess(812, "serve");
  const ShownSlices shown =
      AddChromeTrace(ReadChromeTrace(in, "FILE"),
                     {kFrom, kFrom + std::chrono::milliseconds(1),
                      [&](int32_t pid) { return pid == 812 ? known : TrackEvents::Track{0}; }},
                     events);
  if (slices != nullptr) *slices = shown;
  std::vector<std::string> packets = Packets(out.str());
  packets.erase(packets.begin());
  return packets;
}

TEST(ChromeTracks, a_thread_is_a_track_of_its_process_with_further_ones_for_slices_that_overlap) {
  EXPECT_THAT(
      Show(R"([{"ph":"X","cat":"op","name":"outer","pid":812,"tid":9,"ts":1790000000001001,"dur":9},
              {"ph":"X","cat":"op","name":"inner","pid":812,"tid":9,"ts":1790000000001002,"dur":2},
              {"ph":"X","cat":"op","name":"other","pid":812,"tid":9,"ts":1790000000001005,"dur":9},
              {"ph":"i","name":"step","pid":812,"tid":9,"ts":1790000000001003}])"),
      ElementsAre("track 2 of 1: thread 9", "track 3 of 1: thread 9 (2)",
                  "1001000 ns track 2 begins outer, category op",
                  "1002000 ns track 2 begins inner, category op",
                  "1005000 ns track 3 begins other, category op", "1004000 ns track 2 ends",
                  "1010000 ns track 2 ends", "1014000 ns track 3 ends", "1003000 ns track 2 point step"));
}

TEST(ChromeTracks, a_gpu_with_the_number_of_a_process_is_no_process) {
  EXPECT_THAT(Show(R"([{"ph":"M","name":"process_labels","pid":812,"args":{"labels":"GPU 812"}},
                       {"ph":"X","name":"kernel","pid":812,"tid":7,"ts":1790000000001001,"dur":1}])"),
              ElementsAre("track 2: torch: 812 (GPU 812)", "track 3 of 2: thread 7",
                          "1001000 ns track 3 begins kernel", "1002000 ns track 3 ends"));
}

TEST(ChromeTracks, what_is_before_or_after_the_recording_is_left_out_and_counted) {
  ShownSlices slices;
  EXPECT_THAT(Show(R"([{"ph":"X","name":"long ago","pid":1,"tid":1,"ts":0,"dur":0},
                       {"ph":"X","name":"before","pid":1,"tid":1,"ts":1790000000000001,"dur":1},
                       {"ph":"X","name":"across","pid":1,"tid":1,"ts":1790000000000999,"dur":2},
                       {"ph":"X","name":"after","pid":1,"tid":1,"ts":1790000000002001,"dur":1},
                       {"ph":"i","name":"point after","pid":2,"tid":1,"ts":1790000000002001}])",
                   &slices),
              ElementsAre("track 2: torch: 1", "track 3 of 2: thread 1", "999000 ns track 3 begins across",
                          "1001000 ns track 3 ends"));
  EXPECT_EQ(slices.shown, 1u);
  EXPECT_EQ(slices.left_out, 3u);
}

TEST(ChromeTracks, an_arrow_is_at_the_slice_that_is_there_and_one_without_a_slice_is_left_out) {
  EXPECT_THAT(Show(R"([{"ph":"X","name":"launch","pid":1,"tid":1,"ts":1790000000001001,"dur":5},
                       {"ph":"X","name":"kernel","pid":2,"tid":1,"ts":1790000000001010,"dur":5},
                       {"ph":"s","cat":"a","id":1,"pid":1,"tid":1,"ts":1790000000001002},
                       {"ph":"f","cat":"a","id":1,"pid":2,"tid":1,"ts":1790000000001010},
                       {"ph":"f","cat":"a","id":2,"pid":2,"tid":1,"ts":1790000000001900}])"),
              testing::IsSupersetOf({"1001000 ns track 4 begins launch, arrow 1",
                                     "1010000 ns track 5 begins kernel, arrow 1"}));
}

TEST(ChromeTracks, an_arrow_whose_other_end_is_not_shown_is_left_out) {
  EXPECT_THAT(Show(R"([{"ph":"X","name":"launch","pid":1,"tid":1,"ts":1790000000001001,"dur":5},
                       {"ph":"X","name":"kernel after","pid":2,"tid":1,"ts":1790000000002010,"dur":5},
                       {"ph":"s","cat":"a","id":1,"pid":1,"tid":1,"ts":1790000000001002},
                       {"ph":"f","cat":"a","id":1,"pid":2,"tid":1,"ts":1790000000002010},
                       {"ph":"s","cat":"to itself","id":2,"pid":1,"tid":1,"ts":1790000000001002},
                       {"ph":"f","cat":"to itself","id":2,"pid":1,"tid":1,"ts":1790000000001003}])"),
              ElementsAre("track 2: torch: 1", "track 3 of 2: thread 1", "1001000 ns track 3 begins launch",
                          "1006000 ns track 3 ends"));
}

TEST(ChromeTracks, allocated_memory_is_a_counter_of_each_device) {
  EXPECT_THAT(
      Show(R"([{"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1790000000001001,
               "args":{"Total Allocated":4096,"Device Type":1,"Device Id":2}},
              {"ph":"i","name":"[memory]","pid":1,"tid":1,"ts":1790000000001002,
               "args":{"Total Allocated":7,"Device Type":0,"Device Id":-1}}])"),
      ElementsAre("track 2 counter: torch: allocated memory of CPU, bytes", "1002000 ns track 2 counts 7",
                  "track 3 counter: torch: allocated memory of GPU 2, bytes",
                  "1001000 ns track 3 counts 4096"));
}

}  // namespace
}  // namespace xsched::cli
