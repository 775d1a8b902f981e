// What kernels do. Host code replaces the GPU's instructions, and reads the arguments where the runtime has
// put them. A kernel's name says what it does, whatever code object it is in. C++ names (_Z7spin_usi) find it
// as well. The kernarg segment has the compiler's layout: each pointer and number is at a multiple of its
// size.
//
//   nop()                                    nothing
//   spin_us(int us)                          runs for so long
//   await(const int* p, int v)               runs until *p >= v
//   store(int* p, int v)   add(int* p, int v)   *p = v, *p += v
//   append(int* log, int v)                  log[1 + log[0]++] = v: the order in which things ran
//   fill(int* p, int n, int v)               n times v
//   random_fill(float* p, int n, unsigned seed)   n numbers of [0, 1), the same for a seed
//   vector_add(float* c, const float* a, const float* b, int n)
//   matmul(float* c, const float* a, const float* b, int m, int n, int k)   c[m][n] = a[m][k] b[k][n]
//   convolve(float* y, const float* x, const float* w, int n, int taps)      y[i] = sum of x[i + j] w[j]
//
// There are also the runtime's own kernels (blit_kernels.cc), rocBLAS's (gemm_kernels.cc), and those that a
// test adds (standin_hsa.h). All others do nothing, for the time that the test has set.
#pragma once

#include <hsa/hsa.h>

#include <cstring>
#include <string>
#include <string_view>

#include "code_object.h"

namespace standin_hsa {

class Arguments {
 public:
  Arguments(const void* segment, const KernelCode* code) : segment_(segment), code_(code) {}

  template <typename T>
  T At(size_t offset) const {
    T value;
    std::memcpy(&value, static_cast<const char*>(segment_) + offset, sizeof(T));
    return value;
  }
  // The argument by its position in the source.
  template <typename T>
  T Nth(size_t index) const {
    return At<T>(code_->arguments[index].offset);
  }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // REQUIRES Has(name).
  template <typename T>
  T Named(std::string_view name) const {
    return At<T>(Find(name)->offset);
  }
  // The number of arguments in the source, without those that the compiler adds.
  size_t count() const;
  const std::string& kernel() const { return code_->name; }

 private:
  const Argument* Find(std::string_view name) const;

  const void* segment_;
  const KernelCode* code_;
};

using KernelFunction = void (*)(const Arguments& arguments);

// Null: not one of these.
KernelFunction FindBlitKernel(std::string_view name);
KernelFunction FindGemmKernel(const KernelCode& code);

void RunKernel(const hsa_kernel_dispatch_packet_t& packet, uint32_t gpu, uint64_t queue);

}  // namespace standin_hsa
