#include "cli/trace/nested_slices.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>

namespace xsched::cli {
namespace {

using ::testing::ElementsAre;

// Slices named by their numbers, as they are begun and ended: "0+1 at 5": track 0 begins slice 1.
std::vector<std::string> Events(const NestedSlices& nested) {
  std::vector<std::string> events;
  const auto add = [&](char what, size_t index, size_t track, Duration at) {
    events.push_back(fmt::format("{}{}{} at {}", track, what, nested.slices()[index].name, at.count()));
  };
  nested.Visit([&](size_t index, size_t track) { add('+', index, track, nested.slices()[index].begin); },
               [&](size_t index, size_t track) { add('-', index, track, nested.slices()[index].end); });
  return events;
}

Slice Of(uint32_t name, int begin, int end) { return {Duration(begin), Duration(end), name}; }

TEST(NestedSlices, what_contains_others_begins_first_and_ends_last_whatever_their_order) {
  const NestedSlices nested({Of(2, 5, 10), Of(3, 10, 12), Of(1, 0, 10), Of(4, 10, 20)});
  EXPECT_EQ(nested.tracks(), 1u);
  EXPECT_THAT(Events(nested), ElementsAre("0+1 at 0", "0+2 at 5", "0-2 at 10", "0-1 at 10", "0+4 at 10",
                                          "0+3 at 10", "0-3 at 12", "0-4 at 20"));
}

TEST(NestedSlices, what_overlaps_goes_to_a_further_track_and_the_next_one_back_to_the_first) {
  const NestedSlices nested({Of(1, 0, 10), Of(2, 5, 15), Of(3, 6, 20), Of(4, 10, 12)});
  EXPECT_EQ(nested.tracks(), 3u);
  EXPECT_THAT(Events(nested), ElementsAre("0+1 at 0", "1+2 at 5", "2+3 at 6", "0-1 at 10", "0+4 at 10",
                                          "0-4 at 12", "1-2 at 15", "2-3 at 20"));
}

TEST(NestedSlices, a_slice_of_no_length_is_shown_and_ends_before_the_next) {
  const NestedSlices nested({Of(1, 5, 5), Of(2, 5, 5), Of(3, 0, 5)});
  EXPECT_EQ(nested.tracks(), 1u);
  EXPECT_THAT(Events(nested),
              ElementsAre("0+3 at 0", "0-3 at 5", "0+1 at 5", "0-1 at 5", "0+2 at 5", "0-2 at 5"));
}

TEST(NestedSlices, the_innermost_slice_at_a_time_is_found) {
  const NestedSlices nested({Of(1, 0, 20), Of(2, 5, 10), Of(3, 6, 8)});
  const auto name_at = [&](int at) {
    const std::optional<size_t> found = nested.At(Duration(at));
    return found ? static_cast<int>(nested.slices()[*found].name) : 0;
  };
  EXPECT_EQ(name_at(-1), 0);
  EXPECT_EQ(name_at(0), 1);
  EXPECT_EQ(name_at(7), 3);
  EXPECT_EQ(name_at(9), 2);
  EXPECT_EQ(name_at(15), 1);
  EXPECT_EQ(name_at(21), 0);
  EXPECT_FALSE(NestedSlices({}).At(Duration(1)));
}

}  // namespace
}  // namespace xsched::cli
