// Instances of the stand-in for the HIP runtime, because a process with PyTorch has several of AMD's runtime.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "hal/hip/queue.h"
#include "hal/hip/stream_key.h"
#include "hal/hip/testing/fake_runtime.h"
#include "hip/functions.h"
#include "preempt/api/launch.h"
#include "shim/hip/testing/offered_runtime.h"
#include "xsched/xsched.h"

namespace xsched::hip {

// The number of a function in the dispatch table, or of all that are in it.
int NumberInTable(const std::string& wanted);
int TableLength();

// A runtime instance and a library that is linked to it, in their own folder. Their names differ as well,
// because otherwise the dynamic linker would take one for the other. Both stay loaded.
class RuntimeInstance {
 public:
  explicit RuntimeInstance(int scope = RTLD_LOCAL) {
    static int count = 1000;
    const std::string number = std::to_string(++count);
    folder_ =
        std::filesystem::temp_directory_path() / ("xsched-hip-" + std::to_string(getpid()) + "-" + number);
    path_ = folder_ / ("libamdhip64.so." + number);
    std::filesystem::create_directory(folder_);
    CopyWithNumber(std::filesystem::path(XSCHED_STANDIN_FOLDER) / "libamdhip64.so.0000", path_, number);
    CopyWithNumber(std::filesystem::path(XSCHED_STANDIN_FOLDER) / "liblinked.so", folder_ / "liblinked.so",
                   number);
    if (scope == RTLD_GLOBAL) runtime_ = dlopen(path_.c_str(), RTLD_LAZY | RTLD_GLOBAL);
    // As Python opens its modules.
    linked_ = dlopen((folder_ / "liblinked.so").c_str(), RTLD_LAZY | RTLD_LOCAL);
    EXPECT_NE(linked_, nullptr) << dlerror();
    runtime_ = dlopen(path_.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    EXPECT_NE(runtime_, nullptr) << "the library is linked to another instance";
  }
  ~RuntimeInstance() { std::filesystem::remove_all(folder_); }
  RuntimeInstance(const RuntimeInstance&) = delete;
  RuntimeInstance& operator=(const RuntimeInstance&) = delete;

  void* handle() const { return runtime_; }
  std::string path() const { return path_; }

  template <typename... Args>
  hipError_t Library(const char* name, Args... args) const {
    return reinterpret_cast<hipError_t (*)(Args...)>(dlsym(linked_, name))(args...);
  }
  // A call from here, through a pointer that was looked up in this instance.
  template <typename Result, typename... Parameters, typename... Args>
  Result Call(Result (*function)(Parameters...), const char* name, Args... args) const {
    return reinterpret_cast<decltype(function)>(dlsym(runtime_, name))(args...);
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
  void* TableEntry(int number) const {
    return Fake<decltype(FakeTableEntry)>("FakeTableEntry")(static_cast<uint64_t>(number));
  }
  // The runtime's own function, without our interception of lookups.
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
  // Copies a file, with `number` in the place of the one that follows the runtime's name.
  static void CopyWithNumber(const std::filesystem::path& from, const std::filesystem::path& to,
                             const std::string& number) {
    std::ifstream in(from, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::string name = "libamdhip64.so.";
    for (size_t at = 0; (at = text.find(name + "0000", at)) != std::string::npos; ++at)
      text.replace(at + name.size(), number.size(), number);
    std::ofstream(to, std::ios::binary) << text;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
  void* linked_ = nullptr;
  void* runtime_ = nullptr;
};

inline uint64_t KeyOf(hipStream_t stream) { return reinterpret_cast<uint64_t>(stream); }
inline preempt::XQueue* QueueOf(uint64_t key) { return preempt::FindXQueue(kPlatformHIP, key); }
inline uint64_t Commands(uint64_t key) {
  preempt::XQueue* queue = QueueOf(key);
  return queue == nullptr ? 0 : preempt::SubmittedNow(queue);
}

}  // namespace xsched::hip
