// Whether CUDA programs of this environment share one context through NVIDIA's Multi-Process Service.
#pragma once

namespace xsched::cuda {

// Where the service's control socket is, if there is one. A program that starts CUDA then becomes its client.
struct MpsSocket {
  bool found = false;
  char path[512] = "";
};
MpsSocket FindMpsSocket();

}  // namespace xsched::cuda
