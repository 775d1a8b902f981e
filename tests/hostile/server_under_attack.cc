#include "hostile/server_under_attack.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <time.h>

#include <stdexcept>
#include <utility>

namespace xsched::server::testing {
namespace {

Options OptionsWith(const sched::PolicySetting& policy) {
  spdlog::set_level(spdlog::level::off);
  Options options;
  options.system = true;
  options.policy = policy;
  return options;
}

// As xserver does.
bool RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

int64_t ProcessorNanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

ServerUnderAttack::ServerUnderAttack(const sched::PolicySetting& policy)
    : listener_(std::make_unique<Listener>(folder_.path() + "/s", 0666, std::nullopt)) {
  listener_->path().copy(socket_.text, sizeof socket_.text - 1);
  if (!RaiseDescriptorLimit()) throw std::runtime_error("cannot raise the limit on descriptors");
  thread_ = std::jthread([this, policy](const std::stop_token& stop) {
    Server server(OptionsWith(policy), *listener_);
    for (uint64_t round = 1; !stop.stop_requested(); ++round) {
      const int64_t began = ProcessorNanoseconds();
      server.Round(5);
      const int64_t took = ProcessorNanoseconds() - began;
      int64_t longest = longest_ns_.load();
      while (took > longest && !longest_ns_.compare_exchange_weak(longest, took)) {
      }
      const std::lock_guard lock(mutex_);
      if (looks_) looks_(round);
    }
  });
}

ServerUnderAttack::~ServerUnderAttack() {
  thread_.request_stop();
  thread_.join();
}

void ServerUnderAttack::SetLooks(std::function<void(uint64_t)> looks) {
  const std::lock_guard lock(mutex_);
  looks_ = std::move(looks);
}

Bystander::Bystander(ServerUnderAttack& server) : server_(server) {
  const ipc::SocketPath& socket = server.socket();
  const ActingAs user(kBystander);
  low_ = std::make_unique<TestAgent>(socket);
  urgent_ = std::make_unique<TestAgent>(socket);
  low_->CreateQueue(0, 0, kDevice);
  urgent_->CreateQueue(0, 10, kDevice);
  low_->IsAlive();
  urgent_->IsAlive();
  server.SetLooks([this](uint64_t round) { LooksAfter(round); });
}

void Bystander::LooksAfter(uint64_t round) {
  const uint64_t told = told_;
  if (told == counted_) return;
  if (std::exchange(counting_, told) != told) first_round_ = round;
  if (!low_->IsHeld(0)) return;
  rounds_ = round - first_round_ + 1;
  counted_ = told;
}

Bystander::Hold Bystander::HoldOnce() {
  constexpr auto kPatience = std::chrono::seconds(5);
  low_->ReadAll();
  urgent_->ReadAll();
  low_->Submit(0);
  if (!Eventually([&] { return !low_->IsHeld(0); }, kPatience)) return {};
  Hold hold;
  const TimePoint began = MonotonicClock::now();
  urgent_->Submit(0);
  ++told_;
  while (!low_->IsHeld(0) && MonotonicClock::now() < began + kPatience) std::this_thread::yield();
  hold.held = low_->IsHeld(0);
  hold.time = MonotonicClock::now() - began;
  if (!Eventually([&] { return counted_ == told_; })) hold.held = false;
  hold.rounds = rounds_;
  urgent_->RetireAll(0);
  low_->RetireAll(0);
  return hold;
}

}  // namespace xsched::server::testing
