#include "hal/hip/runtime.h"

#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "hal/hip/stream_key.h"
#include "hal/hip/testing/instances.h"
#include "xsched/hip/hal.h"
#include "xsched/xqueue.h"

namespace xsched::hip {
namespace {

// The file name of the runtime's library, by dladdr.
std::string FileOf(const Runtime* runtime) {
  char* real = runtime == nullptr ? nullptr : realpath(runtime->path(), nullptr);
  std::string file = real == nullptr ? "" : real;
  free(real);
  return file;
}

std::string FileOf(const char* path) {
  char* real = realpath(path, nullptr);
  std::string file = real == nullptr ? "" : real;
  free(real);
  return file;
}

const void* AddressInLibrary(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  return reinterpret_cast<const void* (*)()>(dlsym(library, "AddressInside"))();
}

TEST(HipRuntime, without_one_there_is_none) {
  EXPECT_EQ(RuntimeCount(), 0);
  EXPECT_EQ(DefaultRuntime(), nullptr);
  EXPECT_EQ(RuntimeOfCaller(__builtin_return_address(0)), nullptr);
  HwQueueHandle hwq = 0;
  EXPECT_EQ(HipQueueCreate(&hwq, nullptr), kXSchedErrorNotFound);
  int not_a_stream = 0;
  EXPECT_EQ(HipQueueCreate(&hwq, reinterpret_cast<hipStream_t>(&not_a_stream)), kXSchedErrorNotFound);
}

TEST(HipRuntime, instances_that_are_loaded_locally_are_found_in_the_order_of_their_loading) {
  Instance b(kInstanceB);
  EXPECT_EQ(RuntimeCount(), 1);
  Instance a(kInstanceA);
  ASSERT_EQ(RuntimeCount(), 2);
  EXPECT_EQ(FileOf(RuntimeByIndex(0)), FileOf(kInstanceB));
  EXPECT_EQ(FileOf(RuntimeByIndex(1)), FileOf(kInstanceA));
  EXPECT_EQ(RuntimeByIndex(1)->index(), 1);
  EXPECT_EQ(RuntimeByIndex(2), nullptr);
  EXPECT_EQ(DefaultRuntime(), RuntimeByIndex(0));
}

TEST(HipRuntime, a_caller_is_bound_to_the_instance_that_its_library_is_linked_to) {
  const void* in_b = AddressInLibrary(LINKED_TO_B);
  const void* in_a = AddressInLibrary(LINKED_TO_A);
  EXPECT_EQ(FileOf(RuntimeOfCaller(in_a)), FileOf(kInstanceA));
  EXPECT_EQ(FileOf(RuntimeOfCaller(in_b)), FileOf(kInstanceB));
  // This program is linked to no instance, so it gets the first one.
  EXPECT_EQ(FileOf(RuntimeOfCaller(reinterpret_cast<const void*>(&AddressInLibrary))), FileOf(kInstanceB));
}

TEST(HipRuntime, an_instance_in_the_global_scope_comes_first_as_for_the_dynamic_linker) {
  Instance b(kInstanceB);
  void* a = dlopen(kInstanceA, RTLD_NOW | RTLD_GLOBAL);
  auto* calls_of_a = reinterpret_cast<uint64_t (*)()>(dlsym(a, "FakeCalls"));
  const uint64_t calls = calls_of_a();
  const void* in_b = AddressInLibrary(LINKED_TO_B);
  EXPECT_EQ(calls_of_a(), calls + 1) << "the library's own call went there";
  EXPECT_EQ(FileOf(RuntimeOfCaller(in_b)), FileOf(kInstanceA));
  EXPECT_EQ(FileOf(RuntimeOfCaller(reinterpret_cast<const void*>(&AddressInLibrary))), FileOf(kInstanceA));
}

// For example, a script opens another runtime in the global scope, long after its own libraries.
TEST(HipRuntime, an_instance_that_gets_into_the_global_scope_later_is_not_that_of_earlier_libraries) {
  const void* in_b = AddressInLibrary(LINKED_TO_B);
  ASSERT_NE(dlopen(kInstanceA, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  EXPECT_EQ(FileOf(RuntimeOfCaller(in_b)), FileOf(kInstanceB));
  EXPECT_EQ(FileOf(RuntimeOfCaller(reinterpret_cast<const void*>(&AddressInLibrary))), FileOf(kInstanceA));
}

TEST(HipRuntime, a_functions_instance_is_the_one_that_holds_it) {
  Instance a(kInstanceA), b(kInstanceB);
  const auto* in_b = reinterpret_cast<const void*>(b.Get<void()>("hipStreamSynchronize"));
  EXPECT_EQ(FileOf(RuntimeAt(in_b)), FileOf(kInstanceB));
  EXPECT_EQ(RuntimeAt(reinterpret_cast<const void*>(&AddressInLibrary)), nullptr);
  EXPECT_EQ(RuntimeAt(in_b)->Find("hipStreamSynchronize"), in_b);
  EXPECT_EQ(RuntimeAt(in_b)->Find("hipNoSuchFunction"), nullptr);
}

TEST(HipRuntime, a_thread_that_meets_an_instance_while_another_one_adds_it_gets_it_as_well) {
  if (RuntimeCount() != 0) GTEST_SKIP() << "another test of this process has met it";
  static std::atomic<bool> is_being_added{false}, may_be_added{false};
  Instance a(kInstanceA);
  const auto* function = reinterpret_cast<const void*>(a.Get<void()>("hipStreamSynchronize"));
  while_an_instance_is_added = [] {
    is_being_added = true;
    while (!may_be_added) std::this_thread::yield();
  };
  Runtime* added = nullptr;
  Runtime* found = nullptr;
  std::thread adding([&] { added = RuntimeAt(function); });
  while (!is_being_added) std::this_thread::yield();
  std::thread finding([&] { found = RuntimeAt(function); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  may_be_added = true;
  adding.join();
  finding.join();
  while_an_instance_is_added = nullptr;
  EXPECT_NE(added, nullptr);
  EXPECT_EQ(found, added);
}

TEST(HipRuntime, a_stream_belongs_to_the_instance_that_made_it) {
  Instance a(kInstanceA), b(kInstanceB);
  hipStream_t of_a = a.MakeStream();
  hipStream_t of_b = b.MakeStream();
  EXPECT_EQ(FileOf(RuntimeOfStream(of_a, nullptr)), FileOf(kInstanceA));
  EXPECT_EQ(FileOf(RuntimeOfStream(of_b, nullptr)), FileOf(kInstanceB));
  EXPECT_EQ(FileOf(RuntimeOfStream(of_b, RuntimeOfStream(of_a, nullptr))), FileOf(kInstanceB));
  int not_a_stream = 0;
  EXPECT_EQ(RuntimeOfStream(reinterpret_cast<hipStream_t>(&not_a_stream), nullptr), nullptr);
  EXPECT_EQ(a.PeekAtLastError(), hipSuccess) << "asking left an error behind";
  EXPECT_EQ(b.PeekAtLastError(), hipSuccess) << "asking left an error behind";
}

TEST(HipRuntime, a_good_guess_leaves_the_other_instances_alone) {
  Instance a(kInstanceA), b(kInstanceB);
  hipStream_t of_b = b.MakeStream();
  Runtime* owner = RuntimeOfStream(of_b, nullptr);
  const uint64_t calls = a.Calls();
  EXPECT_EQ(RuntimeOfStream(of_b, owner), owner);
  EXPECT_EQ(a.Calls(), calls);
}

TEST(HipRuntime, the_library_that_is_named_is_opened_where_none_is_loaded) {
  setenv("XSCHED_HIP_LIB", kInstanceB, 1);
  ASSERT_EQ(FileOf(DefaultRuntime()), FileOf(kInstanceB));
  EXPECT_EQ(RuntimeCount(), 1);
}

TEST(HipRuntime, the_library_that_is_named_is_no_second_instance) {
  setenv("XSCHED_HIP_LIB", kInstanceB, 1);
  Instance a(kInstanceA);
  EXPECT_EQ(FileOf(DefaultRuntime()), FileOf(kInstanceA));
  EXPECT_EQ(RuntimeCount(), 1);
  Instance b(kInstanceB);
  EXPECT_EQ(FileOf(DefaultRuntime()), FileOf(kInstanceB)) << "it says which of several";
}

TEST(HipRuntime, a_library_that_cannot_be_opened_is_none) {
  setenv("XSCHED_HIP_LIB", "/nowhere/libamdhip64.so", 1);
  setenv("XSCHED_LOG", "off", 1);
  EXPECT_EQ(DefaultRuntime(), nullptr);
}

// ---- the dispatch table ----

// A table of one instance: its functions by name.
void* InTable(const void* instance, const char* name) {
  return std::string(name) == "hipPeekAtLastError" ? nullptr : dlsym(const_cast<void*>(instance), name);
}

TEST(HipRuntime, an_instance_that_announces_itself_is_registered_once) {
  void* library = dlopen(kInstanceA, RTLD_NOW | RTLD_LOCAL);
  const void* function = dlsym(library, "hipStreamCreate");
  Runtime* announced = RegisterDispatchTable(function, InTable, library);
  ASSERT_NE(announced, nullptr);
  EXPECT_TRUE(announced->has_table());
  EXPECT_EQ(announced->next().hipPeekAtLastError, nullptr) << "the table has none";
  EXPECT_EQ(announced->Find("hipStreamQuery"), dlsym(library, "hipStreamQuery"));
  EXPECT_EQ(announced->Find("hipPeekAtLastError"), dlsym(library, "hipPeekAtLastError"))
      << "what the table has not, the library may have";
  EXPECT_EQ(RuntimeCount(), 1);
  EXPECT_EQ(RuntimeAt(function), announced);
}

TEST(HipRuntime, an_instance_that_announces_itself_stays_loaded) {
  void* library = dlopen(kInstanceA, RTLD_NOW | RTLD_LOCAL);
  Runtime* announced = RegisterDispatchTable(dlsym(library, "hipStreamCreate"), InTable, library);
  ASSERT_NE(announced, nullptr);
  ASSERT_EQ(dlclose(library), 0);
  EXPECT_NE(dlopen(kInstanceA, RTLD_NOW | RTLD_NOLOAD), nullptr);
}

TEST(HipRuntime, an_instance_that_was_found_may_announce_itself_later) {
  Instance b(kInstanceB);
  Runtime* found = DefaultRuntime();
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->has_table());
  void* library = dlopen(kInstanceB, RTLD_NOW | RTLD_LOCAL);
  EXPECT_EQ(RegisterDispatchTable(dlsym(library, "hipStreamCreate"), InTable, library), found);
  EXPECT_TRUE(found->has_table());
}

TEST(HipRuntime, a_table_without_what_xsched_needs_is_refused) {
  Instance a(kInstanceA);
  const auto* function = reinterpret_cast<const void*>(a.Get<void()>("hipStreamCreate"));
  auto nothing = [](const void*, const char*) -> void* { return nullptr; };
  EXPECT_EQ(RegisterDispatchTable(function, nothing, nullptr), nullptr);
}

// ---- queues ----

TEST(HipQueue, a_stream_of_any_instance_gets_one) {
  Instance a(kInstanceA), b(kInstanceB);
  for (const Instance* instance : {&a, &b}) {
    hipStream_t stream = instance->MakeStream();
    HwQueueHandle hwq = 0, again = 0, found = 0;
    ASSERT_EQ(HipQueueCreate(&hwq, stream), kXSchedSuccess);
    EXPECT_EQ(HipQueueCreate(&again, stream), kXSchedSuccess) << "as in XSched 1.2: the one that is there";
    EXPECT_EQ(again, hwq);
    EXPECT_EQ(HipQueueGet(&found, stream), kXSchedSuccess);
    EXPECT_EQ(found, hwq);
    EXPECT_EQ(instance->PeekAtLastError(), hipSuccess);
    EXPECT_EQ(HwQueueSynchronize(hwq), kXSchedSuccess);
    EXPECT_EQ(HwQueueDestroy(hwq), kXSchedSuccess);
    EXPECT_EQ(HipQueueGet(&found, stream), kXSchedErrorNotFound);
  }
}

TEST(HipQueue, what_is_no_stream_gets_none) {
  Instance a(kInstanceA);
  int not_a_stream = 0;
  HwQueueHandle hwq = 0;
  EXPECT_EQ(HipQueueCreate(&hwq, reinterpret_cast<hipStream_t>(&not_a_stream)), kXSchedErrorInvalidValue);
  EXPECT_EQ(HipQueueCreate(nullptr, a.MakeStream()), kXSchedErrorInvalidValue);
  EXPECT_EQ(HipQueueCreate(&hwq, kHipStreamPerThread), kXSchedErrorInvalidValue);
  EXPECT_EQ(hwq, 0u);
}

TEST(HipQueue, each_device_has_a_default_stream) {
  Instance a(kInstanceA);
  HwQueueHandle first = 0, second = 0, found = 0;
  ASSERT_EQ(HipQueueCreate(&first, nullptr), kXSchedSuccess);
  a.SetDevice(1);
  EXPECT_EQ(HipQueueGet(&found, nullptr), kXSchedErrorNotFound);
  ASSERT_EQ(HipQueueCreate(&second, kHipStreamLegacy), kXSchedSuccess);
  EXPECT_NE(first, second);
  a.SetDevice(0);
  EXPECT_EQ(HipQueueGet(&found, kHipStreamLegacy), kXSchedSuccess);
  EXPECT_EQ(found, first);
}

TEST(HipQueue, the_default_stream_is_that_of_the_callers_instance) {
  Instance a(kInstanceA);
  void* linked = dlopen(LINKED_TO_B, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(linked, nullptr) << dlerror();
  HwQueueHandle ours = 0, theirs = 0;
  ASSERT_EQ(HipQueueCreate(&ours, nullptr), kXSchedSuccess);
  auto* make = reinterpret_cast<XResult (*)(HwQueueHandle*)>(dlsym(linked, "MakeDefaultQueue"));
  ASSERT_EQ(make(&theirs), kXSchedSuccess);
  EXPECT_NE(ours, theirs);
  HwQueueHandle found = HwQueueFind(kPlatformHIP, NullStreamKey(1, 0));
  EXPECT_EQ(found, theirs);
  EXPECT_EQ(FileOf(RuntimeByIndex(1)), FileOf(kInstanceB));
}

TEST(StreamKey, default_streams_have_different_keys_that_are_no_addresses) {
  EXPECT_NE(NullStreamKey(0, 0), NullStreamKey(0, 1));
  EXPECT_NE(NullStreamKey(0, 0), NullStreamKey(1, 0));
  EXPECT_NE(PerThreadStreamKey(0, 0, 1), PerThreadStreamKey(0, 0, 2));
  EXPECT_NE(PerThreadStreamKey(1, 0, 1), PerThreadStreamKey(0, 1, 1));
  EXPECT_NE(PerThreadStreamKey(0, 0, 1), NullStreamKey(0, 1));
  EXPECT_GT(NullStreamKey(0, 0), uint64_t{1} << 47);
}

}  // namespace
}  // namespace xsched::hip
