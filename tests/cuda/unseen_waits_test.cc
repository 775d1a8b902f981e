// Waits of one stream for another through something of which the scheduler does not know the stream: events
// of whole contexts and of other processes, and external semaphores. They end as they do natively, also if
// what is awaited is held.
#include <functional>

#include "scheduled.h"

namespace xsched::cuda {
namespace {

// `give` makes something that happens after the work of `giver`; `take` makes `taker` wait for it.
struct Means {
  const char* name;
  std::function<void(CUstream giver)> give;
  std::function<void(CUstream taker)> take;

  friend void PrintTo(const Means& means, std::ostream* out) { *out << means.name; }
};

class UnseenWait : public ScheduledProgram, public testing::WithParamInterface<Means> {
 protected:
  void SetUp() override {
    ScheduledProgram::SetUp();
    ASSERT_EQ(Store(high_, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }

  // The low stream stores 1, the high one waits for that and stores 2.
  void StoreInOrder() {
    ASSERT_EQ(Store(low_, 1), CUDA_SUCCESS);
    GetParam().give(low_);
    GetParam().take(high_);
    ASSERT_EQ(Store(high_, 2), CUDA_SUCCESS);
  }
};

TEST_P(UnseenWait, is_as_natively_where_nothing_is_held) {
  for (int i = 0; i < 20; ++i) {
    *done_.host = 0;
    ASSERT_EQ(Spin(low_, 500), CUDA_SUCCESS);
    StoreInOrder();
    ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
    EXPECT_EQ(*done_.host, 2u);
  }
}

TEST_P(UnseenWait, ends_if_the_awaited_stream_is_held) {
  HoldLow();
  *done_.host = 0;
  StoreInOrder();
  Open();
  // The scheduler sees that nothing moves.
  ASSERT_EQ(cuStreamSynchronize(high_), CUDA_SUCCESS);
  EXPECT_EQ(*done_.host, 2u);
  EXPECT_EQ(cuStreamSynchronize(low_), CUDA_SUCCESS);
}

CUevent NewEvent(unsigned flags = CU_EVENT_DISABLE_TIMING) {
  CUevent event = nullptr;
  EXPECT_EQ(cuEventCreate(&event, flags), CUDA_SUCCESS);
  return event;
}

CUevent& ContextEvent() {
  static CUevent event = NewEvent();
  return event;
}

const Means kContextEvent = {
    "an_event_of_the_context",
    [](CUstream) { EXPECT_EQ(cuCtxRecordEvent(nullptr, ContextEvent()), CUDA_SUCCESS); },
    [](CUstream taker) { EXPECT_EQ(cuStreamWaitEvent(taker, ContextEvent(), 0), CUDA_SUCCESS); },
};

const Means kContextWait = {
    "a_wait_of_the_context",
    [](CUstream giver) { EXPECT_EQ(cuEventRecord(ContextEvent(), giver), CUDA_SUCCESS); },
    [](CUstream) { EXPECT_EQ(cuCtxWaitEvent(nullptr, ContextEvent()), CUDA_SUCCESS); },
};

struct SharedEvent {
  CUevent own = NewEvent(CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  CUevent opened = nullptr;

  SharedEvent() {
    CUipcEventHandle handle;
    EXPECT_EQ(cuIpcGetEventHandle(&handle, own), CUDA_SUCCESS);
    EXPECT_EQ(cuIpcOpenEventHandle(&opened, handle), CUDA_SUCCESS);
  }
  static SharedEvent& Get() {
    static SharedEvent event;
    return event;
  }
};

const Means kSharedEvent = {
    "an_event_of_another_process",
    [](CUstream giver) { EXPECT_EQ(cuEventRecord(SharedEvent::Get().own, giver), CUDA_SUCCESS); },
    [](CUstream taker) { EXPECT_EQ(cuStreamWaitEvent(taker, SharedEvent::Get().opened, 0), CUDA_SUCCESS); },
};

const Means kRecordedByAnother = {
    "an_event_that_another_process_records",
    [](CUstream giver) { EXPECT_EQ(cuEventRecord(SharedEvent::Get().opened, giver), CUDA_SUCCESS); },
    [](CUstream taker) { EXPECT_EQ(cuStreamWaitEvent(taker, SharedEvent::Get().own, 0), CUDA_SUCCESS); },
};

struct Semaphore {
  CUexternalSemaphore handle = nullptr;
  uint64_t value = 0;

  Semaphore() {
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
    EXPECT_EQ(cuImportExternalSemaphore(&handle, &description), CUDA_SUCCESS);
  }
  static Semaphore& Get() {
    static Semaphore semaphore;
    return semaphore;
  }
};

const Means kSemaphore = {
    "an_external_semaphore",
    [](CUstream giver) {
      CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS parameters{};
      parameters.params.fence.value = ++Semaphore::Get().value;
      EXPECT_EQ(cuSignalExternalSemaphoresAsync(&Semaphore::Get().handle, &parameters, 1, giver),
                CUDA_SUCCESS);
    },
    [](CUstream taker) {
      CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS parameters{};
      parameters.params.fence.value = Semaphore::Get().value;
      EXPECT_EQ(cuWaitExternalSemaphoresAsync(&Semaphore::Get().handle, &parameters, 1, taker), CUDA_SUCCESS);
    },
};

INSTANTIATE_TEST_SUITE_P(Through, UnseenWait,
                         testing::Values(kContextEvent, kContextWait, kSharedEvent, kRecordedByAnother,
                                         kSemaphore),
                         [](const testing::TestParamInfo<Means>& tested) { return tested.param.name; });

}  // namespace
}  // namespace xsched::cuda
