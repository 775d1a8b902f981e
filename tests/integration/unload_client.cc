// A program that opens the software device's library and closes it again, for the tests in unloading.py.
//
//   unload_client LIBHALSOFT again|busy
//
// again: many times, each time with new queues, which it destroys. busy: with unfinished commands, whose
// effects it checks after the library has been closed.
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <string>

#include "process_usage.h"
#include "xsched/soft/hal.h"
#include "xsched/xsched.h"

namespace {

struct Library {
  void* handle;

  explicit Library(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) printf("%s\n", dlerror());
  }
  ~Library() { dlclose(handle); }

  // Finds a function of libhalsoft, or of libpreempt behind it.
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle, name));
  }
};

#define FIND(library, function) (library).Find<decltype(function)>(#function)

constexpr int64_t kCommandUs = 1000;

void MakeQueue(const Library& library, HwQueueHandle* hwq, XQueueHandle* xqueue) {
  FIND(library, SoftQueueCreate)(hwq, 1, kPreemptLevelBlock);
  FIND(library, XQueueCreate)(xqueue, *hwq, kPreemptLevelBlock, kQueueCreateFlagNone);
}

void OpenAndClose(const char* path) {
  Library library(path);
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  MakeQueue(library, &hwq, &xqueue);
  for (int i = 0; i < 5; ++i) FIND(library, SoftLaunch)(hwq, kCommandUs, nullptr, nullptr);
  FIND(library, SoftSynchronize)(hwq);
  FIND(library, XQueueDestroy)(xqueue);
  FIND(library, HwQueueDestroy)(hwq);
}

}  // namespace

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc != 3) return 2;
  if (argv[2] == std::string("again")) {
    for (int i = 0; i < 100; ++i) OpenAndClose(argv[1]);
    ProcessUsage before = ProcessUsage::Now();
    for (int i = 0; i < 100; ++i) OpenAndClose(argv[1]);
    before.PrintGrowth("closed");
    return 0;
  }
  HwQueueHandle hwq = 0;
  XQueueHandle xqueue = 0;
  {
    Library library(argv[1]);
    MakeQueue(library, &hwq, &xqueue);
    for (int i = 0; i < 1500; ++i) FIND(library, SoftLaunch)(hwq, kCommandUs, nullptr, nullptr);
  }
  printf("closed\n");
  sleep(1);
  Library library(argv[1]);
  uint64_t finished = 0;
  FIND(library, SoftQueueReport)(hwq, &finished, nullptr);
  printf("%s\n", finished > 100 && finished < 1500 ? "it went on" : "it stood still");
  FIND(library, SoftSynchronize)(hwq);
  FIND(library, SoftQueueReport)(hwq, &finished, nullptr);
  printf("%llu finished\n", static_cast<unsigned long long>(finished));
  return 5;  // with existing queues and the library open
}
