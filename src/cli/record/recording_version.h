// The version of the format of recordings (docs/recording.md). What has been written is still read.
#pragma once

namespace xsched::cli {

// 2 has the lines slice, turn, memory and in_flight, which programs for version 1 refuse.
inline constexpr int kRecordingVersion = 2;
inline constexpr int kOldestRecordingVersion = 1;

}  // namespace xsched::cli
