// Shares of GPUs, as the kubelet counts them: each GPU is kSharesOfGpu devices of 1 percent, with ids such as
// "GPU-…::17". The kubelet chooses devices by their ids; here is said which choice makes sense. Pure.
//
// A container has a part of one GPU, or whole GPUs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace xsched::kubernetes {

inline constexpr int kSharesOfGpu = 100;
// The longest id that the kubelet takes.
inline constexpr size_t kMaxDeviceId = 63;

struct Share {
  std::string gpu;
  int number = 0;  // 0 to kSharesOfGpu - 1
};

std::string IdOf(const Share& share);
// nullopt: it is not the id of a share, in the one way in which IdOf writes it.
std::optional<Share> ReadShareId(std::string_view id);
// Why shares of this GPU could not be told apart; "": they can.
std::string ProblemOfGpuId(const std::string& gpu);

// What a container gets.
struct Allocation {
  std::vector<std::string> gpus;
  int percent = 0;  // of each of them
};

// The meaning of the devices that the kubelet has chosen. The error is for the events of the pod.
Result<Allocation> AllocationOf(const std::vector<std::string>& ids);

// `size` of the `available` devices, with all of `required` among them: of the GPU that has least left, so
// that others stay whole. The error says why there is no sensible choice.
Result<std::vector<std::string>> PreferredShares(const std::vector<std::string>& available,
                                                 const std::vector<std::string>& required, int size);

}  // namespace xsched::kubernetes
