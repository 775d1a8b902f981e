// The shim over stand-ins for the runtime, of which each test loads copies of its own. This program is linked
// to the shim, which so comes first in its global scope, as if it were preloaded.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "hal/hip/queue.h"
#include "hal/hip/stream_key.h"
#include "hal/hip/testing/fake_runtime.h"
#include "hip/functions.h"
#include "preempt/launch.h"
#include "shim/hip/testing/offered_runtime.h"
#include "xsched/xsched.h"

using namespace xsched::hip;
using xsched::preempt::XQueue;

// As programs declare them.
#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream) \
  extern "C" hipError_t name parameters __asm__(symbol);
#include "hip/standin.inc"
#undef XSCHED_FUNCTION

namespace {

namespace fs = std::filesystem;

const int kLength = [] {
  int length = 0;
#define XSCHED_TABLE_ENTRY(name) ++length;
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
  return length;
}();

// The number of a function in the dispatch table.
int NumberInTable(const std::string& wanted) {
  int number = 0;
#define XSCHED_TABLE_ENTRY(name)      \
  if (wanted == #name) return number; \
  ++number;
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
  return -1;
}

constexpr char kNumber[] = "0000";

// Copies a file, with `number` in the place of each kNumber behind the runtime's name.
void CopyWithNumber(const fs::path& from, const fs::path& to, const std::string& number) {
  std::ifstream in(from, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::string name = "libamdhip64.so.";
  for (size_t at = 0; (at = text.find(name + kNumber, at)) != std::string::npos; ++at)
    text.replace(at + name.size(), number.size(), number);
  std::ofstream(to, std::ios::binary) << text;
}

// A copy of the runtime, and a library that is linked to it, in a folder of their own. Names differ as well:
// the dynamic linker would else take the one for the other.
class CopyOfRuntime {
 public:
  CopyOfRuntime() {
    static int count = 1000;
    const std::string number = std::to_string(++count);
    folder_ = fs::temp_directory_path() / ("xsched-hip-" + std::to_string(getpid()) + "-" + number);
    path_ = folder_ / ("libamdhip64.so." + number);
    fs::create_directory(folder_);
    CopyWithNumber(fs::path(XSCHED_STANDIN_FOLDER) / "libamdhip64.so.0000", path_, number);
    CopyWithNumber(fs::path(XSCHED_STANDIN_FOLDER) / "liblinked.so", folder_ / "liblinked.so", number);
    // As Python opens its modules.
    linked_ = dlopen((folder_ / "liblinked.so").c_str(), RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(linked_, nullptr) << dlerror();
    runtime_ = dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    EXPECT_NE(runtime_, nullptr) << "the library is linked to another copy";
  }
  ~CopyOfRuntime() { fs::remove_all(folder_); }

  void* handle() const { return runtime_; }

  template <typename... Args>
  hipError_t Library(const char* name, Args... args) const {
    return reinterpret_cast<hipError_t (*)(Args...)>(dlsym(linked_, name))(args...);
  }
  template <typename Function>
  Function* Fake(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(runtime_, name));
  }
  int CallsOf(const char* symbol) const { return Fake<decltype(FakeCallsOf)>("FakeCallsOf")(symbol); }
  void Finish(hipStream_t stream, uint64_t count) const {
    Fake<decltype(FakeFinish)>("FakeFinish")(stream, count);
  }
  uint64_t Launched(hipStream_t stream) const { return Fake<decltype(FakeLaunched)>("FakeLaunched")(stream); }
  void OfferTable(int length, int instance) const {
    Fake<decltype(FakeOfferTable)>("FakeOfferTable")(static_cast<uint64_t>(length),
                                                     static_cast<uint64_t>(instance));
  }
  // The runtime's own function, past whatever we do about looking it up.
  template <typename Function>
  Function* Exported(const char* symbol) const {
    return reinterpret_cast<Function*>(Fake<decltype(FakeExported)>("FakeExported")(symbol));
  }

  Runtime* runtime() const { return RuntimeAt(Fake<void>("FakeLaunch")); }
  uint64_t NullKey() const { return NullStreamKey(runtime()->index(), 0); }
  hipStream_t NewStream() const {
    hipStream_t stream = nullptr;
    EXPECT_EQ(Library("LibraryMakeStream", &stream), hipSuccess);
    return stream;
  }

 private:
  fs::path folder_;
  fs::path path_;
  void* linked_ = nullptr;
  void* runtime_ = nullptr;
};

uint64_t KeyOf(hipStream_t stream) { return reinterpret_cast<uint64_t>(stream); }
XQueue* QueueOf(uint64_t key) { return xsched::preempt::FindXQueue(kPlatformHIP, key); }
uint64_t Commands(uint64_t key) {
  XQueue* queue = QueueOf(key);
  return queue == nullptr ? 0 : xsched::preempt::SubmittedNow(queue);
}

// The handle of the XQueue that the shim has made.
XQueueHandle HandleOf(const CopyOfRuntime& copy, hipStream_t stream) {
  HwQueueHandle hwq = 0;
  XQueueHandle queue = 0;
  EXPECT_EQ(HipQueueRegister(copy.runtime(), 0, stream, KeyOf(stream), &hwq), kXSchedErrorNotAllowed);
  EXPECT_EQ(XQueueGet(&queue, hwq), kXSchedSuccess);
  return queue;
}

// ---- by linking ----

TEST(HipShim, a_library_reaches_the_copy_that_it_is_linked_to) {
  CopyOfRuntime a, b;
  EXPECT_EQ(a.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(b.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(b.Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 2);
  EXPECT_EQ(Commands(a.NullKey()), 1u);
  EXPECT_EQ(Commands(b.NullKey()), 2u);
}

TEST(HipShim, the_c_function_that_libraries_import_is_scheduled) {
  CopyOfRuntime copy;
  hipStream_t stream = copy.NewStream();
  EXPECT_EQ(copy.Library("LibraryLaunch", stream), hipSuccess);
  EXPECT_EQ(copy.CallsOf("hipExtModuleLaunchKernel"), 1);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST(HipShim, a_stream_is_used_in_the_copy_that_made_it) {
  CopyOfRuntime a, b;
  hipStream_t stream = a.NewStream();
  b.NewStream();
  EXPECT_EQ(b.Library("LibrarySet", stream), hipSuccess) << "the other copy does not know it";
  EXPECT_EQ(a.Launched(stream), 1u);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

template <typename Result, typename... Args>
Result CallWithNothing(Result (*function)(Args...)) {
  return function(Args{}...);
}

TEST(HipShim, every_command_on_the_null_stream_counts) {
  CopyOfRuntime copy;
  copy.NewStream();
  uint64_t expected = 0;
  const uint64_t per_thread = PerThreadStreamKey(copy.runtime()->index(), 0, 1);
#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream)          \
  if (launches) {                                                                       \
    const std::string function = symbol;                                                \
    const uint64_t before = Commands(copy.NullKey()) + Commands(per_thread);            \
    EXPECT_EQ(CallWithNothing(name), hipSuccess) << function;                           \
    EXPECT_EQ(Commands(copy.NullKey()) + Commands(per_thread), before + 1) << function; \
    EXPECT_EQ(copy.CallsOf(symbol), 1) << function;                                     \
    copy.Finish(nullptr, 1);                                                            \
    ++expected;                                                                         \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
  EXPECT_GT(Commands(per_thread), 20u) << "the _spt variants";
  EXPECT_GT(expected, 90u);
}

TEST(HipShim, every_wrapped_function_passes_on_to_the_runtime) {
  CopyOfRuntime copy;
  copy.NewStream();
#define XSCHED_FUNCTION(name, symbol, parameters, arguments, launches, stream) \
  if (std::string(symbol) != "hipGetProcAddress" &&                            \
      std::string(symbol).find("Create") == std::string::npos && !launches) {  \
    CallWithNothing(name);                                                     \
    EXPECT_EQ(copy.CallsOf(symbol), 1) << symbol;                              \
  }
#include "hip/standin.inc"
#undef XSCHED_FUNCTION
}

TEST(HipShim, a_configured_launch_goes_to_the_stream_that_was_said_before) {
  CopyOfRuntime copy;
  hipStream_t outer = copy.NewStream();
  hipStream_t inner = copy.NewStream();
  EXPECT_EQ(hipConfigureCall({}, {}, 0, outer), hipSuccess);
  EXPECT_EQ(hipConfigureCall({}, {}, 0, inner), hipSuccess);
  EXPECT_EQ(hipLaunchByPtr(nullptr), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(inner)), 1u);
  EXPECT_EQ(Commands(KeyOf(outer)), 0u);
  EXPECT_EQ(hipLaunchByPtr(nullptr), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(outer)), 1u);
}

TEST(HipShim, one_launch_on_several_streams_counts_on_each) {
  CopyOfRuntime copy;
  hipLaunchParams launches[2] = {};
  for (hipLaunchParams& launch : launches) launch.stream = copy.NewStream();
  EXPECT_EQ(hipExtLaunchMultiKernelMultiDevice(launches, 2, 0), hipSuccess);
  for (const hipLaunchParams& launch : launches) EXPECT_EQ(Commands(KeyOf(launch.stream)), 1u);
}

TEST(HipShim, what_a_stream_captures_is_not_counted) {
  CopyOfRuntime copy;
  hipStream_t stream = copy.NewStream();
  copy.Library("LibrarySet", stream);
  EXPECT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
  copy.Fake<decltype(FakeCapture)>("FakeCapture")(stream, 1);
  copy.Library("LibrarySet", stream);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
  copy.Fake<decltype(FakeCapture)>("FakeCapture")(stream, 0);
  EXPECT_EQ(hipStreamEndCapture(stream, nullptr), hipSuccess);
  copy.Library("LibrarySet", stream);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST(HipShim, a_stream_that_is_destroyed_takes_its_queue_with_it) {
  CopyOfRuntime copy;
  hipStream_t stream = copy.NewStream();
  copy.Library("LibrarySet", stream);
  copy.Finish(stream, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  ASSERT_NE(QueueOf(KeyOf(stream)), nullptr);
  EXPECT_EQ(copy.Library("LibraryDestroyStream", stream), hipSuccess);
  EXPECT_EQ(QueueOf(KeyOf(stream)), nullptr);
}

TEST(HipShim, a_reset_takes_all_queues_of_the_device) {
  CopyOfRuntime copy;
  hipStream_t stream = copy.NewStream();
  copy.Library("LibrarySet", stream);
  copy.Library("LibrarySet", hipStream_t{});
  copy.Finish(stream, 1);
  copy.Finish(nullptr, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(hipDeviceReset(), hipSuccess);
  EXPECT_EQ(QueueOf(KeyOf(stream)), nullptr);
  EXPECT_EQ(QueueOf(copy.NullKey()), nullptr);
}

// ---- held queues ----

TEST(HipShim, a_held_stream_holds_its_next_launch_and_no_wait) {
  CopyOfRuntime copy;
  hipStream_t stream = copy.NewStream();
  copy.Library("LibrarySet", stream);
  XQueueHandle queue = HandleOf(copy, stream);
  ASSERT_EQ(XQueueSuspend(queue, kQueueSuspendFlagNone), kXSchedSuccess);
  std::atomic<bool> launched{false};
  std::thread launching([&] {
    copy.Library("LibrarySet", stream);
    launched = true;
  });
  // None of these waits for what is not in the runtime yet.
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipModuleUnload(nullptr), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  copy.Finish(stream, 1);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(copy.Launched(stream), 1u);
  EXPECT_FALSE(launched);
  ASSERT_EQ(XQueueResume(queue, kQueueResumeFlagNone), kXSchedSuccess);
  launching.join();
  EXPECT_EQ(copy.Launched(stream), 2u);
}

// ---- looked-up functions ----

TEST(HipShim, a_function_looked_up_in_a_copy_goes_to_that_copy) {
  CopyOfRuntime a, b;
  using Set = hipError_t(void*, int, size_t, hipStream_t);
  auto* in_a = reinterpret_cast<Set*>(dlsym(a.handle(), "hipMemsetAsync"));
  auto* in_b = reinterpret_cast<Set*>(dlsym(b.handle(), "hipMemsetAsync"));
  EXPECT_NE(in_a, in_b);
  EXPECT_NE(in_b, b.Exported<Set>("hipMemsetAsync"));
  EXPECT_EQ(in_b(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.CallsOf("hipMemsetAsync"), 0);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(Commands(b.NullKey()), 1u);
}

TEST(HipShim, what_is_not_wrapped_is_found_as_it_is) {
  CopyOfRuntime copy;
  void* found = dlsym(copy.handle(), "hipStreamGetFlags");
  EXPECT_EQ(found, copy.Exported<void>("hipStreamGetFlags"));
  EXPECT_EQ(dlsym(copy.handle(), "hipNoSuchFunction"), nullptr);
}

TEST(HipShim, hipGetProcAddress_gives_wrappers_of_its_copy) {
  CopyOfRuntime a, b;
  auto* get = reinterpret_cast<decltype(&hipGetProcAddress)>(dlsym(b.handle(), "hipGetProcAddress"));
  void* found = nullptr;
  ASSERT_EQ(get("hipMemsetAsync", &found, 60400, 0, nullptr), hipSuccess);
  EXPECT_EQ(reinterpret_cast<decltype(&hipMemsetAsync)>(found)(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(b.CallsOf("hipMemsetAsync"), 1);
  EXPECT_EQ(Commands(b.NullKey()), 1u);
}

TEST(HipShim, hipGetProcAddress_gives_the_per_thread_variant_where_it_is_asked_for) {
  CopyOfRuntime copy;
  void* found = nullptr;
  ASSERT_EQ(hipGetProcAddress("hipMemsetAsync", &found, 60400, 2, nullptr), hipSuccess);
  EXPECT_EQ(reinterpret_cast<decltype(&hipMemsetAsync)>(found)(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(copy.CallsOf("hipMemsetAsync_spt"), 1);
  EXPECT_EQ(Commands(copy.NullKey()), 0u) << "not the device's own null stream";
}

// ---- through the dispatch table ----

using Set = hipError_t(void*, int, size_t, hipStream_t);

TEST(HipDispatchTable, a_call_that_no_interposition_sees_is_scheduled) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength, 0);
  auto* set = copy.Exported<Set>("hipMemsetAsync");
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(copy.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(copy.NullKey()), 2u);
}

TEST(HipDispatchTable, a_call_that_interposition_sees_as_well_counts_once) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength, 0);
  hipStream_t stream = copy.NewStream();
  EXPECT_EQ(copy.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(copy.Library("LibraryLaunch", stream), hipSuccess);
  EXPECT_EQ(copy.Launched(stream), 2u);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST(HipDispatchTable, each_instance_goes_to_its_copy) {
  CopyOfRuntime a, b;
  a.OfferTable(kLength, 0);
  b.OfferTable(kLength, 1);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.Launched(nullptr), 1u);
  EXPECT_EQ(b.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(a.NullKey()), 1u);
  EXPECT_EQ(Commands(b.NullKey()), 2u);
}

TEST(HipDispatchTable, a_shorter_one_has_wrappers_as_far_as_it_goes) {
  CopyOfRuntime copy;
  // As it was before ROCm 6.4 had hipStreamBatchMemOp.
  const int length = NumberInTable("hipStreamBatchMemOp");
  ASSERT_GT(length, 400);
  copy.OfferTable(length, 0);
  EXPECT_EQ(copy.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(copy.NullKey()), 1u);
  EXPECT_EQ(hipStreamBatchMemOp(nullptr, 0, nullptr, 0), hipSuccess) << "not in the table, but exported";
  EXPECT_EQ(Commands(copy.NullKey()), 2u);
}

TEST(HipDispatchTable, what_a_longer_one_has_more_stays_as_it_is) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength + 20, 0);
  EXPECT_EQ(copy.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(copy.NullKey()), 1u);
  auto* entry = copy.Fake<decltype(FakeTableEntry)>("FakeTableEntry");
  for (int i = kLength; i < kLength + 20; ++i)
    EXPECT_EQ(entry(static_cast<uint64_t>(i)), copy.Fake<void>("FakeOfferTable"));
}

TEST(HipDispatchTable, entries_that_are_not_wrapped_stay_as_they_are) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength, 0);
  copy.NewStream();
  auto* entry = copy.Fake<decltype(FakeTableEntry)>("FakeTableEntry");
  EXPECT_EQ(entry(static_cast<uint64_t>(NumberInTable("hipGetDevice"))), copy.Exported<void>("hipGetDevice"));
  EXPECT_NE(entry(static_cast<uint64_t>(NumberInTable("hipLaunchKernel"))), nullptr);
}

TEST(HipDispatchTable, a_table_that_is_too_short_for_anything_is_left_alone) {
  CopyOfRuntime copy;
  copy.OfferTable(1, 0);
  hipStream_t stream = copy.NewStream();
  EXPECT_EQ(copy.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u) << "by linking";
}

TEST(HipDispatchTable, functions_that_are_looked_up_need_no_wrapper_then) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength, 0);
  copy.NewStream();
  auto* set = reinterpret_cast<Set*>(dlsym(copy.handle(), "hipMemsetAsync"));
  EXPECT_EQ(set, copy.Exported<Set>("hipMemsetAsync"));
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(copy.NullKey()), 1u);
}

TEST(HipDispatchTable, a_function_looked_up_before_the_table_was_offered_counts_once) {
  CopyOfRuntime copy;
  copy.OfferTable(kLength, 0);
  auto* set = reinterpret_cast<Set*>(dlsym(copy.handle(), "hipMemsetAsync"));
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(copy.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(copy.NullKey()), 2u);
}

// ---- passing through, and what is told: the environment is read once, so in a process of its own ----

class HipPassThrough : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // Exits with 0 if `commands` counted of one set and one launch of the library's.
  [[noreturn]] static void Run(uint64_t commands) {
    CopyOfRuntime copy;
    hipStream_t stream = copy.NewStream();
    copy.Library("LibrarySet", stream);
    copy.Library("LibrarySet", stream);
    copy.Library("LibraryLaunch", stream);
    const bool right = copy.Launched(stream) == 3 && Commands(KeyOf(stream)) == commands;
    copy.~CopyOfRuntime();
    _exit(right ? 0 : 1);
  }

  static void WriteFile(const char* text) {
    std::string path = fs::temp_directory_path() / ("xsched-pass-" + std::to_string(getpid()) + ".json");
    FILE* file = fopen(path.c_str(), "w");
    fputs(text, file);
    fclose(file);
    setenv("XSCHED_PASSTHROUGH_FILE", path.c_str(), 1);
  }
};

TEST_F(HipPassThrough, nothing_does_by_default) { EXPECT_EXIT(Run(3), testing::ExitedWithCode(0), "^$"); }

TEST_F(HipPassThrough, a_listed_library_does_and_is_told_of_once) {
  EXPECT_EXIT(
      {
        setenv("XSCHED_PASSTHROUGH_LIBS", "libother.so,liblinked.so", 1);
        setenv("XSCHED_VERBOSE", "1", 1);
        Run(0);
      },
      testing::ExitedWithCode(0),
      "^\\[XSched\\] HIP: [^\n]*liblinked.so uses [^\n]*libamdhip64.so.[0-9]*\n"
      "\\[XSched\\] Passthrough: [^\n]*liblinked.so\n$");
}

TEST_F(HipPassThrough, a_file_says_more) {
  EXPECT_EXIT(
      {
        WriteFile(R"({"passthrough_mode": "whitelist", "libraries": ["liblinked.so"],
                      "functions": {"hipExtModuleLaunchKernel": "schedule"}})");
        Run(1);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(HipPassThrough, all_but_the_listed_may_pass) {
  EXPECT_EXIT(
      {
        WriteFile(R"({"passthrough_mode": "blacklist", "libraries": ["libmine.so"]})");
        Run(0);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(HipPassThrough, a_file_with_a_fault_is_told_of_and_ignored) {
  EXPECT_EXIT(
      {
        WriteFile("{\n\"libraries\": liblinked}");
        Run(3);
      },
      testing::ExitedWithCode(0), "line 2 is not understood");
}

}  // namespace

int main(int argc, char** argv) {
  setenv("XSCHED_AUTO_XQUEUE", "1", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
