// Ranks of one communicator of NCCL are one job. The server's part is played by the test.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <cuda.h>
#include "base/clock.h"
#include "base/fd.h"
#include "communicators/nccl.h"
#include "ipc/client.h"
#include "ipc/job.h"
#include "ipc/messages.h"

namespace xsched {
namespace {

using Training = int (*)(int function, int ranks, char id_end, int rank);

Training TrainingOf(const char* library) {
  void* opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(opened, nullptr) << dlerror();
  return opened == nullptr ? nullptr : reinterpret_cast<Training>(dlsym(opened, "Train"));
}

// By each function, with all arguments and the result.
void ExpectMadeAsNatively(const char* library) {
  const Training train = TrainingOf(library);
  ASSERT_NE(train, nullptr);
  EXPECT_EQ(train(0, 4, 7, 3), 4307);
  EXPECT_EQ(train(1, 4, 7, 3), 14307);
  EXPECT_EQ(train(2, 4, 7, 3), 24307);
}

ncclUniqueId IdOf(char end) {
  ncclUniqueId id{{1}};
  id.internal[127] = end;
  return id;
}

// The functions are asked for by dlsym.
void ExpectMadeBy(const std::string& copy, void* library) {
  const auto by_rank = reinterpret_cast<decltype(&ncclCommInitRank)>(dlsym(library, "ncclCommInitRank"));
  const auto by_config =
      reinterpret_cast<decltype(&ncclCommInitRankConfig)>(dlsym(library, "ncclCommInitRankConfig"));
  const auto by_ids =
      reinterpret_cast<decltype(&ncclCommInitRankScalable)>(dlsym(library, "ncclCommInitRankScalable"));
  ASSERT_TRUE(by_rank != nullptr && by_config != nullptr && by_ids != nullptr);
  void* made[3] = {};
  ncclUniqueId id = IdOf(9);
  EXPECT_EQ(by_rank(&made[0], 4, IdOf(7), 3), 4307);
  EXPECT_EQ(by_config(&made[1], 4, IdOf(8), 3, nullptr), 14308);
  EXPECT_EQ(by_ids(&made[2], 4, 3, 2, &id, nullptr), 44309);
  for (const void* communicator : made) {
    Dl_info info{};
    ASSERT_NE(dladdr(communicator, &info), 0);
    EXPECT_EQ(info.dli_fname, copy);
  }
}

uint64_t JobOf(char id_end) {
  const ncclUniqueId id = IdOf(id_end);
  return ipc::JobNumber(std::span<const char>(id.internal));
}

class CudaCommunicators : public testing::Test {
 protected:
  CudaCommunicators() {
    char folder[] = "/tmp/communicators_test.XXXXXX";
    folder_ = mkdtemp(folder);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder_ + "/s").copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    const timeval patience{5, 0};
    setsockopt(listener_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setenv("XSCHED_SOCKET", address.sun_path, 1);
    unsetenv("XSCHED_JOB");
  }
  ~CudaCommunicators() override { std::filesystem::remove_all(folder_); }

  // With the first command on a stream, the program connects.
  static void UseStream() {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    CUdevice device;
    CUcontext context;
    CUstream stream;
    ASSERT_EQ(cuDeviceGet(&device, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CUdeviceptr memory;
    ASSERT_EQ(cuMemAlloc(&memory, 4), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(memory, 0, 1, stream), CUDA_SUCCESS);
  }
  // Greets the program. `minor`: the server's version.
  void Welcome(uint16_t minor = ipc::kMinor) {
    agent_ = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ipc::Welcome welcome{};
    welcome.major = ipc::kMajor;
    welcome.minor = minor;
    EXPECT_TRUE(ipc::SendWithin(agent_.get(), 2000, welcome));
  }
  // The numbers of so many jobs that the program joins.
  std::vector<uint64_t> Jobs(size_t count) const {
    std::vector<uint64_t> numbers;
    const TimePoint deadline = MonotonicClock::now() + std::chrono::seconds(5);
    ipc::Packet packet;
    while (numbers.size() < count && MonotonicClock::now() < deadline) {
      const ipc::Received received = ipc::ReceivePacket(agent_.get(), packet);
      if (received == ipc::Received::kNothing) usleep(500);
      if (received == ipc::Received::kMessage && packet.header().type == ipc::MessageType::kJoinJob)
        numbers.push_back(packet.As<ipc::JoinJob>().number);
    }
    return numbers;
  }

  std::string folder_;
  UniqueFd listener_;
  UniqueFd agent_;
};

TEST_F(CudaCommunicators, of_a_library_that_is_linked_to_nccl_are_made_as_natively) {
  ExpectMadeAsNatively(TEST_LINKED);
}

TEST_F(CudaCommunicators, of_a_library_that_contains_nccl_are_made_as_natively) {
  ExpectMadeAsNatively(TEST_WHOLE);
}

TEST_F(CudaCommunicators, whose_functions_a_program_asks_for_are_made_as_natively_by_the_copy_that_it_asks) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "ncclCommInitRank"), nullptr) << "the program is not linked to NCCL";
  EXPECT_NE(dlerror(), nullptr) << "many programs print it without a look";
  // More than have functions in front of them.
  for (int i = 0; i < 6; ++i) {
    const std::string copy = folder_ + "/nccl" + std::to_string(i);
    std::filesystem::copy_file(TEST_WHOLE, copy);
    void* library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    ExpectMadeBy(copy, library);
  }
}

TEST_F(CudaCommunicators, whose_functions_a_program_asks_for_tell_the_server_which_ranks_are_one_job) {
  void* library = dlopen(TEST_WHOLE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  ExpectMadeBy(TEST_WHOLE, library);
  UseStream();
  Welcome();
  EXPECT_EQ(Jobs(3), (std::vector{JobOf(7), JobOf(8), JobOf(9)}));
}

TEST_F(CudaCommunicators,
       tell_the_server_which_ranks_are_one_job_be_they_made_before_or_after_the_first_command) {
  const Training train = TrainingOf(TEST_LINKED);
  train(1, 2, 7, 0);
  train(0, 1, 8, 0);  // of this process alone
  UseStream();
  Welcome();
  EXPECT_EQ(Jobs(1), std::vector{JobOf(7)});
  train(2, 2, 9, 1);
  train(2, 2, 9, 1);  // which the server knows
  train(0, 2, 10, 1);
  EXPECT_EQ(Jobs(2), (std::vector{JobOf(9), JobOf(10)}));
}

}  // namespace
}  // namespace xsched
