// AMD's MIOpen, set up as the BLAS libraries in blas_test.cc. MIOpen compiles its kernel at the first use,
// and launches it with hipExtModuleLaunchKernel@hip_4.2.
#include <stdlib.h>

#include <cstring>
#include <string>
#include <vector>

#include "held.h"
#include "miopen_program.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_instances.h"

namespace xsched::hip {
namespace {

constexpr char kKernel[] = "naive_conv_ab_nonpacked_fwd_nchw_float_double_float";

// The arguments of that kernel of MIOpen 3.4.
struct KernelArguments {
  const float *x, *f;
  double alpha, beta;
  float* y;
  uint64_t x_strides[5], f_strides[5], y_strides[5];  // from the last dimension to the first, and the groups'
  int h, w, n, k, c, y_h, y_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w, f_h, f_w, groups;
};

// What the kernel does, for one group.
void Convolve(const void* arguments, const void*) {
  KernelArguments a;
  std::memcpy(&a, arguments, sizeof a);
  auto at = [](const auto* values, const uint64_t* strides, int i, int plane, int row, int column) -> auto& {
    return values[i * strides[3] + plane * strides[2] + row * strides[1] + column * strides[0]];
  };
  for (int i = 0; i < a.n * a.k * a.y_h * a.y_w; ++i) {
    const int column = i % a.y_w, row = i / a.y_w % a.y_h, filter = i / (a.y_w * a.y_h) % a.k;
    const int image = i / (a.y_w * a.y_h * a.k);
    double sum = 0;
    for (int j = 0; j < a.c * a.f_h * a.f_w; ++j) {
      const int fx = j % a.f_w, fy = j / a.f_w % a.f_h, plane = j / (a.f_w * a.f_h);
      const int from_row = row * a.stride_h - a.pad_h + fy * a.dilation_h;
      const int from_column = column * a.stride_w - a.pad_w + fx * a.dilation_w;
      if (from_row < 0 || from_row >= a.h || from_column < 0 || from_column >= a.w) continue;
      sum += static_cast<double>(at(a.x, a.x_strides, image, plane, from_row, from_column)) *
             at(a.f, a.f_strides, filter, plane, fy, fx);
    }
    const_cast<float&>(at(a.y, a.y_strides, image, filter, row, column)) = static_cast<float>(a.alpha * sum);
  }
}

class Miopen : public TwoInstances {
 protected:
  void SetUp() override {
    TwoInstances::SetUp();
    // Only the algorithm whose kernel this test implements. Also, its compiler finds C's headers only without
    // the folder that it names.
    for (const char* other : {"GEMM", "WINOGRAD", "FFT", "IMPLICIT_GEMM"})
      setenv((std::string("MIOPEN_DEBUG_CONV_") + other).c_str(), "0", 1);
    setenv("CCC_OVERRIDE_OPTIONS", "# X-isystem", 1);
    setenv("MIOPEN_USER_DB_PATH", TEST_MIOPEN_CACHE, 1);
    setenv("MIOPEN_CUSTOM_CACHE_DIR", TEST_MIOPEN_CACHE, 1);
    standin_hsa_set_kernel(kKernel, Convolve);
    void* miopen = dlopen(TEST_MIOPEN_PROGRAM, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(miopen, nullptr) << dlerror();
    convolve_ = reinterpret_cast<decltype(convolve_)>(dlsym(miopen, "ConvolveByMiopen"));
    for (float** tensor : {&x_, &f_, &y_}) {
      void* memory = nullptr;
      SUCCEEDS(PROGRAM(ProgramMemory)(&memory, kSize * sizeof(float)));
      *tensor = static_cast<float*>(memory);
      SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, *tensor, kSize, 1));
    }
    SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  }

  int Run() {
    const MiopenConvolution convolution{y_, x_, f_, 2, kPlanes, 3, kEdge, kEdge};
    return convolve_(stream_, &convolution);
  }
  std::vector<float> Read(const float* tensor) {
    std::vector<float> values(kSize);
    EXPECT_EQ(PROGRAM(ProgramRead)(values.data(), tensor, kSize * sizeof(float)), hipSuccess);
    return values;
  }
  // The middle of the first image's first plane, and a corner.
  void IsTheConvolution() {
    const std::vector<float> x = Read(x_), f = Read(f_), y = Read(y_);
    float middle = 0, corner = 0;
    for (int plane = 0; plane < kPlanes; ++plane) {
      const float *image = &x[plane * kEdge * kEdge], *filter = &f[plane * 9];
      for (int row = 0; row < 3; ++row) {
        for (int column = 0; column < 3; ++column)
          middle += image[(3 + row) * kEdge + 3 + column] * filter[row * 3 + column];
      }
      corner += image[0] * filter[4] + image[1] * filter[5] + image[kEdge] * filter[7] +
                image[kEdge + 1] * filter[8];
    }
    EXPECT_NEAR(y[4 * kEdge + 4], middle, 1e-4);
    EXPECT_NEAR(y[0], corner, 1e-4);
  }

  static constexpr int kPlanes = 2, kEdge = 8, kSize = 2 * 3 * kEdge * kEdge;
  float *x_ = nullptr, *f_ = nullptr, *y_ = nullptr;
  int (*convolve_)(hipStream_t, const MiopenConvolution*) = nullptr;
};

TEST_F(Miopen, a_convolution_is_right_counted_and_held) {
  const uint64_t before = Commands(KeyOf(stream_));
  ASSERT_EQ(Run(), 0);
  EXPECT_EQ(Commands(KeyOf(stream_)), before + 1);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(standin_hsa_dispatches(kKernel), 1u);
  IsTheConvolution();
  SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, f_, kSize, 7));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  ExpectHeld(
      QueueOf(stream_), [this] { return Run() == 0 ? hipSuccess : hipErrorUnknown; },
      [] { return standin_hsa_dispatches(kKernel) != 1; });
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  IsTheConvolution();
}

}  // namespace
}  // namespace xsched::hip
