// Finds out whether CUDA programs of this environment share one context through NVIDIA's Multi-Process
// Service.
#pragma once

namespace xsched::cuda {

// The path of the service's control socket, if it exists. In the usual folder it counts only if root or this
// user has made it. Then a program that starts CUDA becomes its client.
struct MpsSocket {
  bool found = false;
  char path[512] = "";
};
MpsSocket FindMpsSocket();

// True if this program has become its client. Found out once. Thread-safe.
bool UnderMps();

}  // namespace xsched::cuda
