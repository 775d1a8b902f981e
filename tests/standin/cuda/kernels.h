// All kernels. A kernel's name says what it does. Every module and library contains all of them, whatever its
// image. C++ names (_Z7spin_usi) find the kernel as well.
//
//   nop()                                    nothing, in the time that the test set (standin_set_kernel_time)
//   spin_us(int us)                          runs for this time
//   store(int* p, int v)   add(int* p, int v)   *p = v, *p += v
//   fill(int* p, int n, int v)               n times v
//   copy(int* to, const int* from)           *to = *from
//   append(int* log, int v)                  log[1 + log[0]++] = v: the order in which things ran
//   append_after(int* log, int v, int us)    the same, at the end of a run of this time
//   work(uint64_t* beat, unsigned loops)     runs for `loops` times 10 ns, then changes beat[0] and
//                                            increments beat[1] (null: neither)
//   fault()                                  the context is lost: CUDA_ERROR_ILLEGAL_ADDRESS
#pragma once

#include <chrono>
#include <string_view>
#include <vector>

#include "context.h"
#include "cuda_api.h"
#include "device.h"

namespace standin {

using Arguments = std::vector<unsigned char>;

struct Kernel {
  const char* name;
  std::vector<size_t> parameter_sizes;
  void (*run)(Context&, const Arguments&);
  int duration_parameter = -1;  // which parameter says how long it runs; -1: the test does
  std::chrono::nanoseconds duration_unit = std::chrono::microseconds(1);
};

const std::vector<Kernel>& Kernels();
const Kernel* FindKernel(std::string_view name);
// Where parameter `index` lies in the arguments.
size_t OffsetOf(const Kernel& kernel, size_t index);
Step KernelStep(Context& context, const Kernel& kernel, Arguments arguments);

// module.cc: from the handle of a function (or of a CUkernel) and the arguments as a launch gives them.
// REQUIRES TheLock.
CUresult MakeKernelStep(Context& context, CUfunction function, void** parameters, void** extra, Step* step);

}  // namespace standin
