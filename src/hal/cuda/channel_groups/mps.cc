#include "hal/cuda/channel_groups/mps.h"

#include <stdio.h>
#include <unistd.h>

#include <atomic>

#include "base/env.h"
#include "base/trusted_socket.h"

namespace xsched::cuda {

MpsSocket FindMpsSocket() {
  const char* own_folder = EnvText("CUDA_MPS_PIPE_DIRECTORY");
  MpsSocket socket;
  const int length = snprintf(socket.path, sizeof socket.path, "%s/control",
                              own_folder != nullptr ? own_folder : "/tmp/nvidia-mps");
  if (length <= 0 || static_cast<size_t>(length) >= sizeof socket.path) return socket;
  // Anybody can make the usual folder.
  socket.found = own_folder != nullptr ? access(socket.path, F_OK) == 0 : IsTrustedSocket(socket.path);
  return socket;
}

bool UnderMps() {
  enum : int { kUnknown, kNo, kYes };
  static constinit std::atomic<int> known{kUnknown};
  if (known.load(std::memory_order_relaxed) == kUnknown)
    known.store(FindMpsSocket().found ? kYes : kNo, std::memory_order_relaxed);
  return known.load(std::memory_order_relaxed) == kYes;
}

}  // namespace xsched::cuda
