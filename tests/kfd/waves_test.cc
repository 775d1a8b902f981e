// Levels 2 and 3 over AMD's own ROCr: the exact requests, waves that are saved in the middle of a kernel
// where AMD's runtime has made room for them, and a kernel's driver that fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <sstream>
#include <thread>
#include <vector>

#include "fixture.h"
#include "standin_amdgpu.h"

namespace xsched::hip {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

constexpr unsigned kUpdate = _IOC_NR(AMDKFD_IOC_UPDATE_QUEUE);

// A wave that counts until the test lets it end. If it were begun anew, or a step were lost, its count would
// not be the number of its steps.
std::atomic<uint64_t> steps{0};
std::atomic<bool> lost{false};
std::atomic<bool> may_end{false};
int Count(void* state, const void*) {
  uint64_t count;
  std::memcpy(&count, state, sizeof count);
  if (count != steps) lost = true;
  ++count;
  std::memcpy(state, &count, sizeof count);
  steps = count;
  return may_end ? 0 : 1;
}

class Waves : public LevelsFixture {
 protected:
  void TearDown() override {
    may_end = true;
    standin_amdgpu_fail(kUpdate, 0, 0, 0, 0);
  }
  // A stream on which a wave runs.
  hipStream_t Begin() {
    hipStream_t stream = NewStream();
    Observe(Record());
    for (const char* kernel : {"__amd_rocclr_fillBuffer", "__amd_rocclr_fillBufferAligned"}) {
      standin_amdgpu_set_wave(kernel, Count);
    }
    Launch(stream, 1);
    EXPECT_TRUE(Await([] { return steps > 3; }));
    Observe(Record());
    return stream;
  }
  void Finish(hipStream_t stream) {
    may_end = true;
    SUCCEEDS(hipStreamSynchronize(stream));
    EXPECT_FALSE(lost);
  }
  static bool Goes() {
    const uint64_t before = steps;
    return Await([before] { return steps > before + 3; });
  }

  // Remembers the queues that a record says were made: "create 2: gpu 1000, type 2, 100 %, priority 7, ring
  // 7f00+1000".
  void Observe(const std::string& record) {
    for (const std::string& line : Lines(record)) {
      unsigned queue = 0, type = 0;
      const size_t percent = line.find("100 %");
      if (std::sscanf(line.c_str(), "create %u: gpu %*x, type %u", &queue, &type) != 2) continue;
      ASSERT_NE(percent, std::string::npos);
      if (type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL) made_.push_back({queue, line.substr(percent + 3)});
    }
  }
  // One request for each queue, as it was made but for the percentage.
  std::vector<std::string> Updates(int percentage) const {
    std::vector<std::string> lines;
    for (const Made& made : made_) {
      lines.push_back("update " + std::to_string(made.queue) + ": " + std::to_string(percentage) + made.rest);
    }
    return lines;
  }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> Requests() { return Lines(Record()); }
  const void* SavedWave() const {
    for (const Made& made : made_) {
      if (const void* saved = standin_amdgpu_saved_wave(made.queue)) return saved;
    }
    return nullptr;
  }

 private:
  struct Made {
    unsigned queue;
    std::string rest;  // " %, priority 7, ring 7f00+1000"
  };
  std::vector<Made> made_;
};

// ---- requests ----

TEST_F(Waves, a_process_is_stopped_and_resumed_by_one_request_for_each_queue_as_it_was_made) {
  Set("3");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  EXPECT_THAT(Requests(), UnorderedElementsAreArray(Updates(0)));
  EXPECT_TRUE(NoneActive());
  Resume(QueueOf(stream));
  EXPECT_THAT(Requests(), UnorderedElementsAreArray(Updates(100)));
  EXPECT_TRUE(AllActive());
  Finish(stream);
}

TEST_F(Waves, a_stream_with_a_queue_of_its_own_is_stopped_by_one_request) {
  Set("2", "16");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  std::vector<std::string> requests = Requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(Updates(0), ::testing::Contains(requests[0]));
  EXPECT_NE(SavedWave(), nullptr) << "it was the queue of the stream";
  Resume(QueueOf(stream));
  requests = Requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(Updates(100), ::testing::Contains(requests[0]));
  Finish(stream);
}

TEST_F(Waves, the_runtimes_own_requests_do_not_resume_a_stopped_process) {
  Set("3");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  Record();
  // ROCr makes a queue, and then asks for its priority.
  hipStream_t urgent = nullptr;
  SUCCEEDS(hipStreamCreateWithPriority(&urgent, hipStreamNonBlocking, -1));
  EXPECT_THAT(Record(), HasSubstr(": 0 %, priority 11, ring "));
  EXPECT_TRUE(NoneActive());
  Resume(QueueOf(stream));
  EXPECT_THAT(Record(), HasSubstr(": 100 %, priority 11, ring "));
  EXPECT_TRUE(AllActive());
  Finish(stream);
}

TEST_F(Waves, streams_come_and_go_while_the_process_is_stopped_and_resumed) {
  Set("3");
  hipStream_t stream = Begin();
  std::atomic<bool> ended{false};
  std::thread creator([&] {
    for (int i = 0; i < 50; ++i) {
      hipStream_t made = nullptr;
      EXPECT_EQ(hipStreamCreateWithPriority(&made, hipStreamNonBlocking, i % 3 - 1), hipSuccess);
      EXPECT_EQ(hipStreamDestroy(made), hipSuccess);
    }
    ended = true;
  });
  for (bool last = false; !last;) {
    last = ended;
    Suspend(QueueOf(stream));
    Resume(QueueOf(stream));
  }
  creator.join();
  EXPECT_TRUE(AllActive());
  EXPECT_TRUE(Goes());
  Finish(stream);
}

// ---- waves ----

TEST_F(Waves, a_kernel_is_stopped_in_its_middle_saved_where_the_runtime_made_room_and_goes_on) {
  Set("3");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  const uint64_t stopped_at = steps;
  EXPECT_EQ(standin_amdgpu_saves(), 1u);
  const void* saved = SavedWave();
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(std::memcmp(saved, &stopped_at, sizeof stopped_at), 0);
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(steps, stopped_at);
  EXPECT_EQ(hipStreamQuery(stream), hipErrorNotReady);
  Resume(QueueOf(stream));
  EXPECT_EQ(standin_amdgpu_restores(), 1u);
  EXPECT_TRUE(Goes());
  Finish(stream);
}

TEST_F(Waves, a_kernel_survives_a_hundred_suspensions) {
  Set("3");
  hipStream_t stream = Begin();
  for (int i = 0; i < 100; ++i) {
    Suspend(QueueOf(stream));
    Resume(QueueOf(stream));
  }
  EXPECT_EQ(standin_amdgpu_saves(), 100u);
  EXPECT_EQ(standin_amdgpu_restores(), 100u);
  EXPECT_TRUE(Goes());
  Finish(stream);
}

// HIP's own kernel for fills, as a wave that fills a piece in each step, as far as it may.
struct FillArguments {
  char* begin;
  const char* pattern;
  uint32_t pattern_size;  // in units of the alignment
  uint32_t alignment;
  char* end;
};
std::atomic<uint64_t> filled{0};
std::atomic<uint64_t> may_fill{0};
int FillPiece(void* state, const void* arguments) {
  uint64_t done;
  std::memcpy(&done, state, sizeof done);
  FillArguments fill;
  std::memcpy(&fill, arguments, sizeof fill);
  const uint64_t size = static_cast<uint64_t>(fill.end - fill.begin);
  const size_t piece = size_t{fill.pattern_size} * fill.alignment;
  if (done >= may_fill && done < size) return 1;
  std::memcpy(fill.begin + done, fill.pattern, piece);
  filled = done += piece;
  std::memcpy(state, &done, sizeof done);
  return done < size ? 1 : 0;
}

TEST_F(Waves, a_fill_that_is_suspended_again_and_again_is_complete) {
  constexpr int kSuspensions = 64;
  constexpr size_t kPart = 4096, kSize = kSuspensions * kPart;
  Set("3");
  hipStream_t stream = NewStream();
  void* memory = nullptr;
  SUCCEEDS(hipMalloc(&memory, kSize));
  standin_amdgpu_set_wave("__amd_rocclr_fillBufferAligned", FillPiece);
  SUCCEEDS(hipMemsetAsync(memory, 0x5c, kSize, stream));
  for (size_t end = kPart; end <= kSize; end += kPart) {
    may_fill = end - kPart / 2;
    ASSERT_TRUE(Await([] { return filled >= may_fill; }));
    Suspend(QueueOf(stream));
    Resume(QueueOf(stream));
  }
  EXPECT_EQ(standin_amdgpu_saves(), uint64_t{kSuspensions});
  may_fill = kSize;
  SUCCEEDS(hipStreamSynchronize(stream));
  std::vector<char> copy(kSize);
  SUCCEEDS(hipMemcpy(copy.data(), memory, kSize, hipMemcpyDeviceToHost));
  EXPECT_EQ(copy, std::vector<char>(kSize, 0x5c));
  SUCCEEDS(hipFree(memory));
}

// ---- failures ----

TEST_F(Waves, interrupted_requests_are_repeated) {
  Set("3");
  hipStream_t stream = Begin();
  standin_amdgpu_fail(kUpdate, 1, 3, EINTR, kStandinAmdgpuRefuse);
  Suspend(QueueOf(stream));
  EXPECT_TRUE(NoneActive());
  standin_amdgpu_fail(kUpdate, 1, 3, EINTR, kStandinAmdgpuRefuse);
  Resume(QueueOf(stream));
  EXPECT_TRUE(AllActive());
  Finish(stream);
}

struct Failure {
  const char* name;
  int nth;  // of the requests of one suspension
  int error;
  int how;
};
std::ostream& operator<<(std::ostream& out, const Failure& failure) { return out << failure.name; }

constexpr Failure kFailures[] = {
    {"busy", 1, EBUSY, kStandinAmdgpuRefuse},
    {"busy_for_the_second_queue", 2, EBUSY, kStandinAmdgpuRefuse},
    {"no_memory", 1, ENOMEM, kStandinAmdgpuRefuse},
    {"timed_out", 2, ETIME, kStandinAmdgpuRefuse},
    {"not_permitted", 1, EPERM, kStandinAmdgpuRefuse},
    {"timed_out_but_took_effect", 1, ETIME, kStandinAmdgpuTakesEffect},
    {"timed_out_but_took_effect_for_the_second_queue", 2, ETIME, kStandinAmdgpuTakesEffect},
};

class FailingWaves : public Waves, public ::testing::WithParamInterface<Failure> {
 protected:
  // From now on the queue has level 1: nothing is suspended, what runs goes on, and the next launch waits.
  void ExpectLevel1(hipStream_t stream) {
    EXPECT_TRUE(AllActive());
    EXPECT_TRUE(Goes());
    std::atomic<bool> launched{false};
    std::thread launcher([&] {
      Launch(stream, 1);
      launched = true;
    });
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_FALSE(launched);
    standin_amdgpu_set_wave("__amd_rocclr_fillBufferAligned", nullptr);
    Resume(QueueOf(stream));
    may_end = true;
    launcher.join();
  }
};

TEST_P(FailingWaves, a_failed_suspension_leaves_level_1_and_everything_active) {
  Set("3");
  hipStream_t stream = Begin();
  standin_amdgpu_fail(kUpdate, GetParam().nth, 1, GetParam().error, GetParam().how);
  ::testing::internal::CaptureStderr();
  Suspend(QueueOf(stream));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("HIP runs with preemption level 1 from now on"));
  ExpectLevel1(stream);
  Finish(stream);
}

TEST_P(FailingWaves, a_failed_resumption_is_repeated) {
  Set("3");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  standin_amdgpu_fail(kUpdate, GetParam().nth, 1, GetParam().error, GetParam().how);
  ::testing::internal::CaptureStderr();
  Resume(QueueOf(stream));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("HIP runs with preemption level 1 from now on"));
  EXPECT_TRUE(AllActive());
  EXPECT_TRUE(Goes());
  Finish(stream);
}

INSTANTIATE_TEST_SUITE_P(Kfd, FailingWaves, ::testing::ValuesIn(kFailures),
                         [](const auto& failure) { return failure.param.name; });

TEST_F(Waves, a_driver_that_refuses_all_requests_leaves_everything_active) {
  Set("3");
  hipStream_t stream = Begin();
  standin_amdgpu_fail(kUpdate, 1, 1'000'000, EINVAL, kStandinAmdgpuRefuse);
  Suspend(QueueOf(stream));
  EXPECT_TRUE(AllActive());
  EXPECT_TRUE(Goes());
  Resume(QueueOf(stream));
  Finish(stream);
}

TEST_F(Waves, a_queue_that_could_not_be_resumed_is_resumed_when_the_driver_is_well_again) {
  Set("3");
  hipStream_t stream = Begin();
  Suspend(QueueOf(stream));
  standin_amdgpu_fail(kUpdate, 1, 1'000'000, EBUSY, kStandinAmdgpuRefuse);
  ::testing::internal::CaptureStderr();
  Resume(QueueOf(stream));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("what is on it may never end"));
  EXPECT_TRUE(NoneActive());
  standin_amdgpu_fail(kUpdate, 0, 0, 0, 0);
  Suspend(QueueOf(stream));
  Resume(QueueOf(stream));
  EXPECT_TRUE(AllActive());
  EXPECT_TRUE(Goes());
  Finish(stream);
}

}  // namespace
}  // namespace xsched::hip
