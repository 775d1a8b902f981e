#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

namespace xsched::cuda {
namespace {

// Tests with a forked child. Its exit status is 0 if its stream is scheduled.
class Fork : public CudaProgram {
 protected:
  // Each test decides where CUDA is first used.
  void SetUp() override {}
  void UseCuda() { CudaProgram::SetUp(); }

  int InChild() {
    UseCuda();
    if (HasFailure()) return 1;
    CUstream stream = NewStream();
    if (Launch(stream) != CUDA_SUCCESS) return 2;
    if (cuStreamSynchronize(stream) != CUDA_SUCCESS) return 3;
    return Commands(KeyOf(stream)) == 1 ? 0 : 4;
  }
  static int WaitFor(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(Fork, a_child_of_a_program_that_has_not_used_cuda_is_scheduled) {
  pid_t child = fork();
  if (child == 0) _exit(InChild());
  EXPECT_EQ(WaitFor(child), 0);
}

// The driver does not work in such a child. The shim must not make this worse.
TEST_F(Fork, a_child_of_a_program_that_uses_cuda_gets_the_drivers_errors) {
  UseCuda();
  CUstream stream = NewStream();
  ASSERT_EQ(Launch(stream), CUDA_SUCCESS);
  pid_t child = fork();
  if (child == 0) {
    CUdeviceptr memory = 0;
    bool refused = cuMemAlloc_v2(&memory, 64) != CUDA_SUCCESS && Launch(stream) != CUDA_SUCCESS &&
                   Launch(nullptr) != CUDA_SUCCESS && cuStreamSynchronize(stream) != CUDA_SUCCESS;
    _exit(refused ? 0 : 1);
  }
  EXPECT_EQ(WaitFor(child), 0);
  EXPECT_EQ(Launch(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
}

}  // namespace
}  // namespace xsched::cuda
