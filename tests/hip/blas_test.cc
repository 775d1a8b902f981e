// AMD's rocBLAS and hipBLAS, unmodified but for the name of the runtime that they want, as PyTorch's wheels
// bring them: beside their own runtime instance, with the installed one in the process as well.
#include <stdlib.h>

#include <string>
#include <vector>

#include "blas_program.h"
#include "held.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_instances.h"

namespace xsched::hip {
namespace {

constexpr int kM = 48, kN = 32, kK = 64;

class Blas : public TwoInstances, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    TwoInstances::SetUp();
    setenv("ROCBLAS_TENSILE_LIBPATH", TEST_BLAS_KERNELS, 1);
    void* blas = dlopen(TEST_BLAS_PROGRAM, RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(blas, nullptr) << dlerror();
    multiply_ = reinterpret_cast<decltype(multiply_)>(dlsym(blas, GetParam()));
    ASSERT_NE(multiply_, nullptr);
    for (int i = 0; i < 3; ++i) {
      void* memory = nullptr;
      SUCCEEDS(PROGRAM(ProgramMemory)(&memory, kSize * sizeof(float)));
      matrices_[i] = static_cast<float*>(memory);
      SUCCEEDS(PROGRAM(ProgramRandomFill)(stream_, matrices_[i], kSize, i));
    }
    SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  }

  int Multiply(bool a_transposed, bool b_transposed) {
    const BlasProduct product{matrices_[2], matrices_[0], matrices_[1], kM,
                              kN,           kK,           a_transposed, b_transposed};
    return multiply_(stream_, &product);
  }
  std::vector<float> Read(int index) {
    std::vector<float> values(kSize);
    EXPECT_EQ(PROGRAM(ProgramRead)(values.data(), matrices_[index], kSize * sizeof(float)), hipSuccess);
    return values;
  }
  void IsTheProduct(bool a_transposed, bool b_transposed) {
    const std::vector<float> a = Read(0), b = Read(1), c = Read(2);
    for (int j = 0; j < kN; ++j) {
      for (int i = 0; i < kM; ++i) {
        float sum = 0;
        for (int l = 0; l < kK; ++l)
          sum += a[a_transposed ? i * kK + l : l * kM + i] * b[b_transposed ? l * kN + j : j * kK + l];
        ASSERT_NEAR(c[j * kM + i], sum, 1e-3) << i << ' ' << j;
      }
    }
  }

  static constexpr int kSize = 64 * 64;
  float* matrices_[3] = {};
  int (*multiply_)(hipStream_t, const BlasProduct*) = nullptr;
};

TEST_P(Blas, a_matrix_product_is_right_and_counted) {
  for (bool a_transposed : {false, true}) {
    for (bool b_transposed : {false, true}) {
      const uint64_t before = Commands(KeyOf(stream_));
      ASSERT_EQ(Multiply(a_transposed, b_transposed), 0);
      EXPECT_GT(Commands(KeyOf(stream_)), before);
      SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
      IsTheProduct(a_transposed, b_transposed);
    }
  }
}

TEST_P(Blas, a_matrix_product_is_held) {
  ASSERT_EQ(Multiply(false, false), 0);
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  const uint64_t before = standin_hsa_dispatches(nullptr);
  ExpectHeld(
      QueueOf(stream_), [this] { return Multiply(true, false) == 0 ? hipSuccess : hipErrorUnknown; },
      [&] { return standin_hsa_dispatches(nullptr) != before; });
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  IsTheProduct(true, false);
}

INSTANTIATE_TEST_SUITE_P(Of, Blas, testing::Values("BlasByRocBlas", "BlasByHipBlas"),
                         [](const auto& test) { return std::string(test.param + sizeof "BlasBy" - 1); });

}  // namespace
}  // namespace xsched::hip
