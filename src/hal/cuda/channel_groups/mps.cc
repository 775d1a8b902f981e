#include "hal/cuda/channel_groups/mps.h"

#include <stdio.h>
#include <unistd.h>

#include "base/env.h"

namespace xsched::cuda {

MpsSocket FindMpsSocket() {
  const char* folder = EnvText("CUDA_MPS_PIPE_DIRECTORY");
  if (folder == nullptr) folder = "/tmp/nvidia-mps";
  MpsSocket socket;
  int length = snprintf(socket.path, sizeof socket.path, "%s/control", folder);
  socket.found =
      length > 0 && static_cast<size_t>(length) < sizeof socket.path && access(socket.path, F_OK) == 0;
  return socket;
}

}  // namespace xsched::cuda
