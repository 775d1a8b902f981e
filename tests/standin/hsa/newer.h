// Numbers that newer runtimes ask by, and that Debian 12's headers do not know.
#pragma once

namespace standin_hsa {

enum NewerSystemInfo {
  kSystemMwaitxEnabled = 0x203,
  kSystemDmabufSupported,
  kSystemVirtualMemorySupported,
  kSystemXnackEnabled
};
enum NewerAgentInfo {
  kAgentMemoryAvailable = 0xA015,
  kAgentTimestampFrequency = 0xA016,
  kAgentAsicFamilyId = 0xA107,
  kAgentSdmaEngines = 0xA10A,
  kAgentXgmiSdmaEngines = 0xA10B,
  kAgentXccs = 0xA111,
  kAgentNearestCpu = 0xA113,
  kAgentMemoryProperties = 0xA114,
  kAgentAqlExtensions = 0xA115,
  kAgentScratchLimitMax = 0xA116,
  kAgentScratchLimitCurrent = 0xA117,
};
enum NewerPoolInfo { kPoolRecommendedGranule = 18 };

}  // namespace standin_hsa
