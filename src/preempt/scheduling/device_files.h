// The device files that this process has open. They show the server which devices it can use.
#pragma once

#include <cstddef>
#include <span>

namespace xsched::preempt {

// Not those that every process may have: terminals, /dev/null, …
// ROCm opens all devices: eight GPUs that are divided into eight parts each are 65 files.
inline constexpr size_t kMostDeviceFiles = 128;

// Puts descriptors into `fds`, one for each file. Returns how many. They are the program's own: it may close
// them at any time.
size_t FindDeviceFiles(std::span<int, kMostDeviceFiles> fds);

}  // namespace xsched::preempt
