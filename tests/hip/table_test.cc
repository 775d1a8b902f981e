// AMD's dispatch table as the registry describes it (registry/hip/dispatch_table.txt): this program takes the
// table as a profiler does, puts stubs in the place of its functions, and calls every exported function. No
// part of XSched is in this process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace {

struct Entry {
  const char* name;
  uint64_t since;
};
constexpr Entry kRegistry[] = {
#define XSCHED_TABLE_ENTRY(name, since) {#name, since},
#include "hip/standin.inc"
#undef XSCHED_TABLE_ENTRY
};

constexpr size_t kMaxEntries = 1024;
constexpr int kNone = -1;
volatile int called = kNone;

template <int kNumber>
long Stub() {
  called = kNumber;
  return 0;
}

template <int... kNumbers>
constexpr std::array<long (*)(), sizeof...(kNumbers)> StubsOf(std::integer_sequence<int, kNumbers...>) {
  return {&Stub<kNumbers>...};
}
constexpr auto kStubs = StubsOf(std::make_integer_sequence<int, kMaxEntries>());

struct Table {
  size_t size;
  void* functions[];
};
size_t length = 0;
uint64_t version_of_table = 0;

// As many as the runtime's version has.
size_t KnownEntries() {
  size_t count = 0;
  while (count < std::size(kRegistry) && kRegistry[count].since <= version_of_table) ++count;
  return count;
}

// Which stub the exported function gets to, called with nothing but zeros.
int StubBehind(void* function) {
  called = kNone;
  reinterpret_cast<long (*)(long, long, long, long, long, long, long, long)>(function)(0, 0, 0, 0, 0, 0, 0,
                                                                                       0);
  return called;
}

// In a process of its own, since it may crash. Then it is kNone.
int StubBehindInChild(void* function) {
  int ends[2];
  if (pipe(ends) != 0) return kNone;
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    const int number = StubBehind(function);
    _exit(write(ends[1], &number, sizeof number) == sizeof number ? 0 : 1);
  }
  close(ends[1]);
  int number = kNone;
  if (read(ends[0], &number, sizeof number) != sizeof number) number = kNone;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return number;
}

class HipTable : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = dlopen(getenv("TEST_INSTALLED_RUNTIME"), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(runtime_, nullptr) << dlerror();
    int version = 0;
    // The first call: the table is offered.
    reinterpret_cast<int (*)(int*)>(dlsym(runtime_, "hipRuntimeGetVersion"))(&version);
    ASSERT_NE(length, 0u) << "it has offered no table";
  }
  void* runtime_ = nullptr;
};

// An older table has the first ones of them.
TEST_F(HipTable, the_registry_knows_each_entry) { EXPECT_GE(KnownEntries(), length); }

TEST_F(HipTable, each_exported_function_goes_by_the_entry_that_the_registry_says) {
  size_t checked = 0;
  for (size_t i = 0; i < length; ++i) {
    void* function = dlsym(runtime_, kRegistry[i].name);
    if (function == nullptr) continue;
    EXPECT_EQ(StubBehindInChild(function), static_cast<int>(i)) << kRegistry[i].name;
    ++checked;
  }
  EXPECT_GT(checked, 450u);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// That it is there is what the runtime looks for.
EXPORT void* rocprofiler_configure(uint32_t, const char*, uint32_t, void*) { return nullptr; }

EXPORT int rocprofiler_set_api_table(const char* name, uint64_t version, uint64_t, void** tables, uint64_t) {
  if (strcmp(name, "hip") != 0) return 0;
  auto* table = static_cast<Table*>(tables[0]);
  length = (table->size - sizeof table->size) / sizeof(void*);
  version_of_table = version;
  for (size_t i = 0; i < length && i < kMaxEntries; ++i)
    table->functions[i] = reinterpret_cast<void*>(kStubs[i]);
  return 0;
}

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
