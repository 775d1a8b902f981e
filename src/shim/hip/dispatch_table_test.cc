// The HIP dispatch table. It is offered to the shim that this program is linked to, as if the shim were
// preloaded.
#include "shim/hip/testing/runtime_instance.h"

extern "C" hipError_t hipStreamBatchMemOp(hipStream_t stream, unsigned count,
                                          hipStreamBatchMemOpParams* operations, unsigned flags);
extern "C" hipError_t hipMemcpyAtoHAsync(void* to, xsched::hip::hipArray_t from, size_t offset, size_t bytes,
                                         hipStream_t stream);

namespace xsched::hip {

int NumberInTable(const std::string& wanted) {
  int number = 0;
#define XSCHED_TABLE_ENTRY(name, since) \
  if (wanted == #name) return number;   \
  ++number;
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
  return -1;
}

int TableLength() {
  int length = 0;
#define XSCHED_TABLE_ENTRY(name, since) ++length;
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
  return length;
}

namespace {

using Set = hipError_t(void*, int, size_t, hipStream_t);

// Is the function one of the shim's?
bool IsOurs(void* function) {
  Dl_info info, shims;
  return dladdr(function, &info) != 0 && dladdr(dlsym(RTLD_DEFAULT, "rocprofiler_configure"), &shims) != 0 &&
         info.dli_fbase == shims.dli_fbase;
}

TEST(HipDispatchTable, a_call_that_no_interposition_sees_is_scheduled) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  auto* set = instance.Exported<Set>("hipMemsetAsync");
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(instance.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(instance.NullKey()), 2u);
}

TEST(HipDispatchTable, a_call_that_interposition_sees_as_well_counts_once) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(instance.Library("LibraryLaunch", stream), hipSuccess);
  EXPECT_EQ(instance.Launched(stream), 2u);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
}

TEST(HipDispatchTable, each_instance_goes_to_its_instance) {
  RuntimeInstance a, b;
  a.OfferTable(TableLength(), 0);
  b.OfferTable(TableLength(), 1);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(a.Launched(nullptr), 1u);
  EXPECT_EQ(b.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(a.NullKey()), 1u);
  EXPECT_EQ(Commands(b.NullKey()), 2u);
}

TEST(HipDispatchTable, a_shorter_one_has_wrappers_as_far_as_it_goes) {
  RuntimeInstance instance;
  // As it was before ROCm 6.4 had hipStreamBatchMemOp.
  const int length = NumberInTable("hipStreamBatchMemOp");
  ASSERT_GT(length, 400);
  instance.OfferTable(length, 0);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
  EXPECT_EQ(hipStreamBatchMemOp(nullptr, 0, nullptr, 0), hipSuccess) << "not in the table, but exported";
  EXPECT_EQ(Commands(instance.NullKey()), 2u);
}

TEST(HipDispatchTable, what_a_shorter_one_does_not_have_is_wrapped_where_it_is_looked_up) {
  RuntimeInstance instance;
  instance.OfferTable(NumberInTable("hipStreamBatchMemOp"), 0);
  instance.NewStream();
  EXPECT_EQ(instance.Call(hipStreamBatchMemOp, "hipStreamBatchMemOp", nullptr, 0, nullptr, 0), hipSuccess);
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
  EXPECT_EQ(instance.CallsOf("hipStreamBatchMemOp"), 1);
}

TEST(HipDispatchTable, what_a_longer_one_has_more_stays_as_it_is) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength() + 20, 0);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
  for (int i = TableLength(); i < TableLength() + 20; ++i)
    EXPECT_EQ(instance.TableEntry(i), instance.Fake<void>("FakeOfferTable"));
}

TEST(HipDispatchTable, what_may_be_something_else_in_an_older_version_stays_as_it_is) {
  const int number = NumberInTable("hipLibraryEnumerateKernels");
  RuntimeInstance older, newer;
  older.Fake<decltype(FakeOfferVersion)>("FakeOfferVersion")(70100);
  newer.Fake<decltype(FakeOfferVersion)>("FakeOfferVersion")(70200);
  older.OfferTable(TableLength(), 0);
  newer.OfferTable(TableLength(), 1);
  EXPECT_EQ(older.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(newer.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(older.NullKey()), 1u);
  EXPECT_FALSE(IsOurs(older.TableEntry(number)));
  EXPECT_TRUE(IsOurs(newer.TableEntry(number)));
}

// Builds of 6.3 have the functions for graphs before those for arrays.
TEST(HipDispatchTable, what_builds_of_6_3_have_in_another_order_is_caught_by_its_name_alone) {
  RuntimeInstance older, newer;
  older.Fake<decltype(FakeOfferVersion)>("FakeOfferVersion")(60300);
  newer.Fake<decltype(FakeOfferVersion)>("FakeOfferVersion")(60400);
  older.OfferTable(TableLength(), 0);
  newer.OfferTable(TableLength(), 1);
  EXPECT_EQ(older.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(newer.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(older.NullKey()), 1u) << "what comes before is wrapped";
  const int last = NumberInTable("hipDrvGraphExecMemsetNodeSetParams");
  for (int i = NumberInTable("hipSetValidDevices"); i <= last; ++i)
    EXPECT_FALSE(IsOurs(older.TableEntry(i))) << i;
  for (const char* name : {"hipMemcpyAtoHAsync", "hipMemcpyHtoAAsync", "hipStreamBatchMemOp"})
    EXPECT_TRUE(IsOurs(newer.TableEntry(NumberInTable(name)))) << name;
  EXPECT_EQ(older.Call(hipMemcpyAtoHAsync, "hipMemcpyAtoHAsync", nullptr, nullptr, 0, 0, nullptr),
            hipSuccess);
  EXPECT_EQ(Commands(older.NullKey()), 2u);
}

TEST(HipDispatchTable, entries_that_are_not_wrapped_stay_as_they_are) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  instance.NewStream();
  EXPECT_EQ(instance.TableEntry(NumberInTable("hipGetDevice")), instance.Exported<void>("hipGetDevice"));
  EXPECT_NE(instance.TableEntry(NumberInTable("hipLaunchKernel")), nullptr);
}

TEST(HipDispatchTable, the_compilers_table_stays_as_it_is) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  instance.NewStream();
  EXPECT_TRUE(instance.Fake<decltype(FakeCompilerTableIsWhole)>("FakeCompilerTableIsWhole")());
  EXPECT_EQ(instance.Fake<decltype(FakeOfferResult)>("FakeOfferResult")(), 0);
}

TEST(HipDispatchTable, a_stream_is_used_in_the_instance_that_made_it) {
  RuntimeInstance a, b;
  a.OfferTable(TableLength(), 0);
  b.OfferTable(TableLength(), 1);
  hipStream_t stream = nullptr;
  ASSERT_EQ(a.Exported<hipError_t(hipStream_t*)>("hipStreamCreate")(&stream), hipSuccess);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(b.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, stream), hipSuccess);
  EXPECT_EQ(a.Launched(stream), 1u);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
}

TEST(HipDispatchTable, of_more_instances_than_there_are_wrappers_for_the_table_stays_as_it_is) {
  RuntimeInstance instances[9];
  for (int i = 0; i < 9; ++i) {
    instances[i].OfferTable(TableLength(), i);
    EXPECT_EQ(instances[i].Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
    EXPECT_EQ(instances[i].Launched(nullptr), 1u);
    EXPECT_EQ(Commands(instances[i].NullKey()), i < 8 ? 1u : 0u);
  }
  EXPECT_EQ(instances[8].Library("LibrarySet", hipStream_t{}), hipSuccess);
  EXPECT_EQ(Commands(instances[8].NullKey()), 1u) << "by linking";
}

TEST(HipDispatchTable, a_table_that_is_offered_again_is_wrapped_once) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  instance.NewStream();
  void* wrapper = instance.TableEntry(NumberInTable("hipMemsetAsync"));
  instance.Fake<decltype(FakeOfferAgain)>("FakeOfferAgain")();
  EXPECT_EQ(instance.TableEntry(NumberInTable("hipMemsetAsync")), wrapper);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(instance.Launched(nullptr), 1u);
}

// ---- with a profiler that is loaded as well ----

// In the scope of the whole program, or of whoever has opened it.
class HipProfiled : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    profiler_ = dlopen(XSCHED_TEST_PROFILER, RTLD_NOW | GetParam());
    ASSERT_NE(profiler_, nullptr) << dlerror();
  }
  template <typename... Args>
  int Profiler(const char* name, Args... args) const {
    return reinterpret_cast<int (*)(Args...)>(dlsym(profiler_, name))(args...);
  }

 private:
  void* profiler_ = nullptr;
};

TEST_P(HipProfiled, both_see_each_call_once) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(Profiler("ProfilerTables"), 2) << "the compiler's and the runtime's";
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, stream), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(stream)), 2u);
  EXPECT_EQ(Profiler("ProfilerCalls"), 2);
  EXPECT_EQ(instance.Launched(stream), 2u);
}

TEST_P(HipProfiled, the_instance_is_known_by_its_own_functions) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(RuntimeCount(), 1);
  EXPECT_EQ(instance.runtime()->path(), instance.path());
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
}

TEST_P(HipProfiled, a_call_that_is_held_has_not_begun_for_the_profiler) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_NE(instance.TableEntry(NumberInTable("hipMemsetAsync")), nullptr);
  const void* outermost = instance.TableEntry(NumberInTable("hipMemsetAsync"));
  Dl_info info;
  ASSERT_NE(dladdr(outermost, &info), 0);
  EXPECT_NE(std::string(info.dli_fname).find("libshimhip"), std::string::npos) << "ours is called first";
}

TEST_P(HipProfiled, its_answer_is_the_runtimes) {
  Profiler("ProfilerAnswers", 7);
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(instance.Fake<decltype(FakeOfferResult)>("FakeOfferResult")(), 7);
  EXPECT_EQ(Commands(instance.NullKey()), 1u) << "scheduled all the same";
}

INSTANTIATE_TEST_SUITE_P(Opened, HipProfiled, testing::Values(RTLD_GLOBAL, RTLD_LOCAL),
                         [](const auto& scope) {
                           return std::string(scope.param == RTLD_GLOBAL ? "globally" : "locally");
                         });

// A profiler that is attached later gets all tables again, and its wrapper calls ours.
TEST(HipDispatchTable, a_profiler_that_comes_later_is_no_endless_circle) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  hipStream_t stream = instance.NewStream();
  void* profiler = dlopen(XSCHED_TEST_PROFILER, RTLD_NOW | RTLD_GLOBAL);
  instance.Fake<decltype(FakeOfferAgain)>("FakeOfferAgain")();
  instance.Fake<decltype(FakeOfferAgain)>("FakeOfferAgain")();
  EXPECT_EQ(instance.Exported<Set>("hipMemsetAsync")(nullptr, 0, 0, stream), hipSuccess);
  EXPECT_EQ(instance.Launched(stream), 1u);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u);
  EXPECT_EQ(reinterpret_cast<int (*)()>(dlsym(profiler, "ProfilerCalls"))(), 1);
}

TEST(HipDispatchTable, a_table_that_is_too_short_for_anything_is_left_alone) {
  RuntimeInstance instance;
  instance.OfferTable(1, 0);
  hipStream_t stream = instance.NewStream();
  EXPECT_EQ(instance.Library("LibrarySet", stream), hipSuccess);
  EXPECT_EQ(Commands(KeyOf(stream)), 1u) << "by linking";
}

TEST(HipDispatchTable, functions_that_are_looked_up_need_no_wrapper_then) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  instance.NewStream();
  auto* set = reinterpret_cast<Set*>(dlsym(instance.handle(), "hipMemsetAsync"));
  EXPECT_EQ(set, instance.Exported<Set>("hipMemsetAsync"));
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(Commands(instance.NullKey()), 1u);
}

TEST(HipDispatchTable, a_function_looked_up_before_the_table_was_offered_counts_once) {
  RuntimeInstance instance;
  instance.OfferTable(TableLength(), 0);
  auto* set = reinterpret_cast<Set*>(dlsym(instance.handle(), "hipMemsetAsync"));
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(set(nullptr, 0, 0, nullptr), hipSuccess);
  EXPECT_EQ(instance.Launched(nullptr), 2u);
  EXPECT_EQ(Commands(instance.NullKey()), 2u);
}

}  // namespace
}  // namespace xsched::hip
