// The shim is not preloaded: a program loads it into the global scope when its own runtime is there already,
// as Python programs did (ctypes.CDLL(…, RTLD_GLOBAL)). The dynamic linker then finds it for what is not
// bound so far.
#include "held.h"
#include "queues.h"
#include "standin_hsa.h"
#include "two_instances.h"

namespace xsched::hip {
namespace {

class LateLoading : public TwoInstances {
 protected:
  static void LoadShim() { ASSERT_NE(dlopen(TEST_SHIM, RTLD_LAZY | RTLD_GLOBAL), nullptr) << dlerror(); }
};

TEST_F(LateLoading, what_is_first_called_after_it_is_scheduled) {
  LoadShim();
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 7));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  EXPECT_EQ(Commands(KeyOf(stream_)), 1u);
  ExpectHeld(
      QueueOf(stream_), [this] { return PROGRAM(ProgramAppend)(stream_, log_, 8); },
      [] { return standin_hsa_dispatches("append") != 1; });
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  int log[3] = {};
  SUCCEEDS(PROGRAM(ProgramRead)(log, log_, sizeof log));
  EXPECT_EQ(log[0], 2);
  EXPECT_EQ(log[2], 8);
}

// Each library has bindings of its own.
TEST_F(LateLoading, what_was_called_before_it_passes_by_and_works) {
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 1));
  LoadShim();
  SUCCEEDS(PROGRAM(ProgramAppend)(stream_, log_, 2));
  EXPECT_FALSE(HasQueue(KeyOf(stream_)));
  hipStream_t other = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&other));
  SUCCEEDS(OTHER(ProgramAppend)(other, log_, 3));
  EXPECT_EQ(Commands(KeyOf(other)), 1u);
  SUCCEEDS(OTHER(ProgramSynchronize)(other));
  SUCCEEDS(PROGRAM(ProgramSynchronize)(stream_));
  int log[4] = {};
  SUCCEEDS(PROGRAM(ProgramRead)(log, log_, sizeof log));
  EXPECT_EQ(log[0], 3);
}

TEST_F(LateLoading, a_program_that_is_loaded_later_still_is_scheduled) {
  LoadShim();
  hipStream_t stream = nullptr;
  SUCCEEDS(OTHER(ProgramStream)(&stream));
  SUCCEEDS(OTHER(ProgramRandomFill)(stream, Matrix(0), kFloats, 1));
  SUCCEEDS(OTHER(ProgramMatmul)(stream, Matrix(2), Matrix(0), Matrix(0), 16, 16, 16));
  SUCCEEDS(OTHER(ProgramSynchronize)(stream));
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
  EXPECT_EQ(standin_hsa_dispatches("matmul"), 1u);
}

}  // namespace
}  // namespace xsched::hip
