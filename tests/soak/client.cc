// A program of the soak test. It works in phases, which its seed determines. soak.py starts it and watches
// its page.
//
//   soak_PLATFORM PAGES INDEX SEED SECONDS PRIORITY LEVEL [native]
//
// PAGES: a file of Page. A forked child uses the page `kChildPages` behind its parent's.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>

#include "device.h"

namespace soak {

void Fail(Page& page, const char* what, long got, long wanted) {
  ++page.errors;
  fprintf(stderr, "soak: wrong result: %s: %ld where %ld was due\n", what, got, wanted);
  _exit(3);
}

namespace {

// For how many nanoseconds this thread has been ready to run without having a processor; 0: not known.
uint64_t QueuedNs() {
  uint64_t queued = 0;
  if (FILE* file = fopen("/proc/thread-self/schedstat", "re")) {
    if (fscanf(file, "%*u %" SCNu64, &queued) != 1) queued = 0;
    fclose(file);
  }
  return queued;
}

}  // namespace

Making::Making(Page& page) : page_(page), began_(NowNs()), late_(page.late_ns), queued_(QueuedNs()) {}

Making::~Making() {
  uint64_t took = NowNs() - began_;
  if (took <= page_.longest_create_ns) return;
  const uint64_t queued = QueuedNs() - queued_;
  // The thread that measures its own delay may itself still be delayed.
  usleep(20'000);
  took -= std::min(took, std::max(page_.late_ns - late_, queued));
  page_.longest_create_ns = std::max<uint64_t>(page_.longest_create_ns, took);
}

namespace {

constexpr int kChildPages = 40;

// What a client does now. soak.py has the names in the same order.
enum class Phase : uint64_t {
  kStart,
  kContinuous,
  kAhead,
  kTask,
  kIdle,
  kQueues,
  kLong,
  kFork,
  kSteady,
  kEnd
};

class Client {
 public:
  Client(Page* pages, int index, uint64_t seed, const Options& options, char** argv)
      : pages_(pages), index_(index), page_(pages[index]), random_(seed), options_(options), argv_(argv) {}

  int Run() {
    Enter(Phase::kStart);
    page_.wants = 1;
    page_.pid = static_cast<uint64_t>(getpid());
    const uint64_t end = NowNs() + static_cast<uint64_t>(options_.seconds * 1e9);
    std::thread([this] { Observe(); }).detach();
    device_ = OpenDevice(page_, options_);
    __atomic_store_n(&observed_, device_.get(), __ATOMIC_RELEASE);
    ++page_.steps;
    while (NowNs() < end && command() != Command::kExit) RunPhase();
    return End();
  }

 private:
  Command command() const { return static_cast<Command>(page_.command.load()); }
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }
  void Enter(Phase phase) { page_.phase = static_cast<uint64_t>(phase); }
  void Sleep(uint32_t milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
  // Only while nothing is in flight.
  void SleepOnPurpose(uint32_t milliseconds) {
    page_.wants = 0;
    Sleep(milliseconds);
    page_.wants = 1;
  }

  void Launch(uint32_t microseconds) {
    device_->Launch(microseconds);
    ++launched_;
  }
  void Synchronize() {
    device_->Synchronize(Below(3));
    ++page_.steps;
  }

  void Round() {
    for (int i = 0; i < 8; ++i) Launch(1000);
    Synchronize();
    // All programs of the test share the processors.
    if (device_->uses_processor()) SleepOnPurpose(command() == Command::kSteady ? 1 : 10);
  }

  void RunPhase() {
    if (command() == Command::kSteady) return Steady();
    if (command() == Command::kIdle) return Idle(20);
    const uint32_t choice = Below(100);
    if (choice < 25) return Continuous();
    if (choice < 40) return Ahead();
    if (choice < 70) return Task();
    if (choice < 84) return Idle(100 + Below(900));
    if (choice < 92) return Queues();
    if (choice < 94) return Long();
    if (options_.is_child) return;
    if (choice < 97) return Fork();
    if (choice < 99 && options_.seconds < 100) return Exec();
  }

  void Steady() {
    Enter(Phase::kSteady);
    for (; command() == Command::kSteady; Round()) {
    }
  }

  void Continuous() {
    Enter(Phase::kContinuous);
    for (uint32_t rounds = 10 + Below(100); rounds > 0 && command() == Command::kRun; --rounds) Round();
  }

  // Launches far more than any queue of a driver has room for, and never waits.
  void Ahead() {
    Enter(Phase::kAhead);
    const uint32_t count = 200 + Below(1500);
    for (uint32_t i = 0; i < count; ++i) Launch(300);
    if (Below(2) == 0) Sleep(Below(300));
    Synchronize();
  }

  void Task() {
    Enter(Phase::kTask);
    for (uint32_t rounds = 10 + Below(20); rounds > 0 && command() == Command::kRun; --rounds) {
      for (int i = 0; i < 5; ++i) Launch(1000);
      Synchronize();
      SleepOnPurpose(40);
    }
  }

  void Idle(uint32_t milliseconds) {
    Enter(Phase::kIdle);
    SleepOnPurpose(milliseconds);
  }

  void Queues() {
    Enter(Phase::kQueues);
    for (int i = 0; i < 3; ++i) {
      Launch(500);
      device_->UseAnotherQueue();
      ++page_.steps;
    }
    Synchronize();
  }

  void Long() {
    Enter(Phase::kLong);
    Launch(150'000 + Below(250'000));
    Synchronize();
  }

  // Forks with work in flight. The child uses the device if that works natively, and always ends through
  // exit.
  void Fork() {
    Enter(Phase::kFork);
    for (int i = 0; i < 20; ++i) Launch(500);
    const bool works = device_->works_after_fork() && Below(2) == 0;
    if (pages_[index_ + kChildPages].pid != 0) return Synchronize();
    const pid_t child = fork();
    if (child == 0) {
      if (!works) exit(0);
      // The child does not use or destroy its parent's device.
      static_cast<void>(device_.release());
      Options own = options_;
      own.seconds = 1;
      own.is_child = true;
      exit(Client(pages_, index_ + kChildPages, random_(), own, argv_).Run());
    }
    for (;;) {
      int status = 0;
      if (waitpid(child, &status, WNOHANG) == child) {
        pages_[index_ + kChildPages].pid = 0;
        if (status != 0) Fail(page_, "the status of a child", status, 0);
        break;
      }
      for (int i = 0; i < 4; ++i) Launch(1000);
      Synchronize();
      Sleep(5);
    }
  }

  // Replaces the program by a new one, also with work in flight.
  void Exec() {
    for (int i = 0; i < 50; ++i) Launch(500);
    std::string seed = std::to_string(random_());
    argv_[3] = seed.data();
    execv(argv_[0], argv_);
    Fail(page_, "exec", 0, 0);
  }

  int End() {
    Enter(Phase::kEnd);
    for (int i = 0; i < 20; ++i) Launch(1000);
    switch (command() == Command::kExit ? 0 : Below(3)) {
      case 0:
        Synchronize();
        break;
      case 1:
        _exit(0);
      default:
        // A program that forgets to wait. At its end, the driver does whatever it does then.
        break;
    }
    __atomic_store_n(&observed_, nullptr, __ATOMIC_RELEASE);
    Sleep(30);
    device_.reset();
    return 0;
  }

  void Observe() {
    constexpr uint64_t kEvery = 10'000'000;
    for (uint64_t before = NowNs();;) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(kEvery));
      const uint64_t now = NowNs();
      if (now - before > kEvery * 3 / 2) page_.late_ns += now - before - kEvery;
      before = now;
      if (Device* device = __atomic_load_n(&observed_, __ATOMIC_ACQUIRE)) device->Observe();
    }
  }

  Page* pages_;
  int index_;
  Page& page_;
  std::mt19937_64 random_;
  Options options_;
  char** argv_;
  std::unique_ptr<Device> device_;
  Device* observed_ = nullptr;
  uint64_t launched_ = 0;
};

}  // namespace
}  // namespace soak

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  const int file = open(argv[1], O_RDWR | O_CLOEXEC);
  void* map =
      mmap(nullptr, 2 * soak::kChildPages * sizeof(soak::Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (map == MAP_FAILED) return 2;
  close(file);
  soak::Options options;
  options.seconds = atof(argv[4]);
  options.priority = atoi(argv[5]);
  options.level = atoi(argv[6]);
  options.native = argc > 7 && strcmp(argv[7], "native") == 0;
  return soak::Client(static_cast<soak::Page*>(map), atoi(argv[2]), strtoull(argv[3], nullptr, 10), options,
                      argv)
      .Run();
}
