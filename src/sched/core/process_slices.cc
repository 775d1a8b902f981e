#include "sched/core/process_slices.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sched/core/queue_record.h"
#include "sched/core/turns.h"

namespace xsched::sched {
namespace {

// How long a process without queues keeps its slice, and processes in conflict the driver's.
constexpr Duration kKeep = std::chrono::seconds(1);
// Commands up to this length count as short. It is the distance of gates where nothing else stops a queue.
constexpr Duration kShort = std::chrono::microseconds(50);
// After so much of the device's time, the average length of a process's commands is known.
constexpr Duration kWeighAfter = std::chrono::milliseconds(20);
// How often, at least, it is computed anew while processes share: their commands may become longer.
constexpr Duration kWeighAgain = std::chrono::milliseconds(100);
// How long a process takes to answer what it has retired.
constexpr Duration kAnswerTime = std::chrono::milliseconds(1);

bool IsShortest(const ProcessRecord& process) { return process.slice == kShortestSlice; }

// The slice of who runs in the gaps of another process. Beside a language model without graphs, a training
// does 0.3 of its rate alone if it is held in the gaps, and the whole of it with slices of 0.25 to 2 ms. The
// time of a token was the same (H200).
constexpr Duration kGapSlice = std::chrono::microseconds(500);

}  // namespace

ProcessSlices::~ProcessSlices() {
  for (ProcessRecord* process : by_id_) delete process;
}

size_t ProcessSlices::IndexById(ProcessId id) const {
  auto before = [](const ProcessRecord* process, ProcessId other) { return process->id < other; };
  return static_cast<size_t>(std::lower_bound(by_id_.begin(), by_id_.end(), id, before) - by_id_.begin());
}

ProcessRecord* ProcessSlices::Find(ProcessId id) const {
  const size_t at = IndexById(id);
  return at < by_id_.size() && by_id_[at]->id == id ? by_id_[at] : nullptr;
}

ProcessRecord* ProcessSlices::Get(ProcessId id, DeviceRecord& device) {
  const size_t at = IndexById(id);
  ProcessRecord* process = at < by_id_.size() && by_id_[at]->id == id ? by_id_[at] : nullptr;
  if (process != nullptr && process->takes_part) return process;
  if (!by_id_.Reserve(by_id_.size() + 1) || !processes_.Reserve(processes_.size() + 1)) return nullptr;
  if (process == nullptr) {
    process = new (std::nothrow) ProcessRecord;
    if (process == nullptr) return nullptr;
    process->id = id;
    process->device = &device;
    by_id_.Insert(at, process);
  }
  process->takes_part = processes_.Push(process);  // reserved above
  trial_.ProcessCame();
  return process;
}

void ProcessSlices::QueueGone(ProcessRecord& process, bool keeps_account, TimePoint now) {
  if (--process.queues == 0) process.empty_since = now;
  if (!none() || (keeps_account && process.queues == 0)) {
    refresh_at_ = std::min(refresh_at_, now + kKeep);
    return;
  }
  // All processes have the driver's slice. One queue less changes no slice, and nothing must be given back.
  if (process.queues != 0) return;
  for (Array<ProcessRecord*>* list : {&processes_, &by_id_}) {
    for (size_t i = list->size(); i-- > 0;) {
      if ((*list)[i] == &process) list->Remove(i);
    }
  }
  LeaveTenant(process, now);
  delete &process;
}

void ProcessSlices::TakeOut(ProcessRecord& process, DeviceId device, Turns& turns, ControlSink& sink) {
  Set(device, process, kDriversSlice, TimePoint{}, sink);
  SetTurn(device, process, false, sink);
  LeaveTurns(process, turns);
  process.slice = kDriversSlice;
  process.requests = OwnRequests{};
  process.weigh_at = kNever;
  process.compared = process.takes_part = false;
  process.ready = process.competes = process.on = process.absent_work = false;
  process.contends = false;
}

void ProcessSlices::ForgetThoseWithoutQueues(TimePoint now) {
  size_t kept = 0;
  for (ProcessRecord* process : by_id_) {
    const TimePoint until = process->empty_since + kKeepAccount;
    if (process->queues == 0 && (process->ended || now >= until)) {
      LeaveTenant(*process, now);
      delete process;
      continue;
    }
    if (process->queues == 0) refresh_at_ = std::min(refresh_at_, until);
    by_id_[kept++] = process;
  }
  while (by_id_.size() > kept) by_id_.Pop();
}

void ProcessSlices::LeaveTurns(ProcessRecord& process, Turns& turns) {
  turns.Leave(process);
  if (turn_.holder == &process) turn_.holder = nullptr;
}

void ProcessSlices::Refresh(const PolicySetting& setting, size_t at_a_time, DeviceId device,
                            std::span<QueueRecord* const> queues, Turns& turns, TimePoint now,
                            ControlSink& sink) {
  refresh_at_ = kNever;
  refreshed_ = true;
  size_t kept = 0;
  for (ProcessRecord* process : processes_) {
    if (process->queues == 0) {
      TakeOut(*process, device, turns, sink);
      continue;
    }
    process->priority = PRIORITY_NO_EXECUTE;
    process->utilization = UTILIZATION_MIN;
    process->weight = WEIGHT_MIN;
    processes_[kept++] = process;
  }
  while (processes_.size() > kept) processes_.Pop();
  ForgetThoseWithoutQueues(now);

  all_sliceable_ = true;
  for (const QueueRecord* queue : queues) {
    all_sliceable_ &= queue->traits.sliceable;
    ProcessRecord& process = *queue->process;
    process.priority = std::max(process.priority, queue->hints.priority);
    process.utilization = std::max(process.utilization, queue->hints.utilization);
    process.weight = std::max(process.weight, queue->hints.weight);
    process.facts = queue->facts;
  }
  division_ = Division::kNone;
  if (can_be_divided() && views_.Reserve(processes_.size())) {
    views_.Clear();
    for (const ProcessRecord* process : processes_) {
      [[maybe_unused]] bool pushed = views_.Push(ProcessView{.id = process->id,
                                                             .tenant = TenantOf(*process),
                                                             .priority = process->priority,
                                                             .utilization = process->utilization,
                                                             .weight = process->weight,
                                                             .facts = process->facts,
                                                             .hints = process->hints,
                                                             .slice = kDriversSlice});
    }
    division_ = setting.Divide(views_, at_a_time);
  }
  follows_ = none() && leader_ != nullptr && can_be_divided();
  turn_takers_ = 0;
  for (size_t i = 0; i < processes_.size(); ++i) {
    processes_[i]->slice = follows_ ? kShortestSlice : none() ? kDriversSlice : views_[i].slice;
    turn_takers_ += IsShortest(*processes_[i]);
  }
  if (follows_) division_ = Division::kBesideHolding;
  sharing_ = sharing_ && division_ == Division::kBesideHolding && !follows_ && turn_takers_ > 1;
  JoinParties(turns);
  if (division_ == Division::kBesideHolding) return;
  in_order_.Forget();
  turn_ = Turn{};
  for (ProcessRecord* process : processes_) {
    turns.Leave(*process);
    process->compared = process->ready = process->competes = process->on = false;
    process->requests.since = kNever;
  }
}

// If there is no memory for turns, there are no slices: two processes with the shortest one would stand
// still.
void ProcessSlices::JoinParties(Turns& turns) {
  if (division_ != Division::kBesideHolding) return;
  for (ProcessRecord* process : processes_) {
    if (!IsShortest(*process)) LeaveTurns(*process, turns);
  }
  const auto detach = [&](ProcessRecord& process, const PartyKey& key) {
    turns.Detach(process, key);
    return true;
  };
  const auto join = [&](ProcessRecord& process, const PartyKey& key) { return turns.Join(process, key); };
  const bool fine = ForEachParty(turns, /*all=*/false, detach) && ForEachParty(turns, /*all=*/false, join);
  turns.DropEmpty();
  if (fine) return;
  division_ = Division::kNone;
  follows_ = false;
  for (ProcessRecord* process : processes_) process->slice = kDriversSlice;
}

void ProcessSlices::Follow(const DeviceRecord* leader) {
  if (std::exchange(leader_, leader) != leader) Changed();
}

bool ProcessSlices::is_behind() const {
  return follows_ && leader_ != nullptr && leader_->slices.take_turns() != leader_turns_;
}

// Of processes without a known job, nobody knows which belong together.
size_t ProcessSlices::Meeting(const DeviceRecord& other, const Turns& turns) {
  size_t meeting = 0;
  ForEachParty(turns, /*all=*/true, [&](ProcessRecord&, const PartyKey& key) {
    const bool known = key.job != JobId{} || key.process != ProcessId{};
    meeting += known && turns.IsOn(key, other);
    return true;
  });
  return meeting;
}

// Calls act(process, key) for each process that takes turns or, with `all`, for each that would if all did,
// until it returns false. Returns false if it did, or if there is no memory.
template <typename Do>
bool ProcessSlices::ForEachParty(const Turns& turns, bool all, Do&& act) {
  if (!PrepareGroups()) return false;
  for (ProcessRecord* process : processes_) {
    if (!all && !IsShortest(*process)) continue;
    PartyKey key;
    key.job = turns.JobOf(process->id);
    if (key.job == JobId{} && process->on_others) {
      key.process = process->id;
    } else {
      if (key.job == JobId{}) key.priority = process->priority;
      key.number = FindGroup(key.job, key.priority).members++;
    }
    if (!act(*process, key)) return false;
  }
  return true;
}

// A hash table with room for a group of each process. False: out of memory.
bool ProcessSlices::PrepareGroups() {
  size_t capacity = 8;
  while (capacity < processes_.size() * 2) capacity *= 2;
  groups_.Clear();
  if (!groups_.Reserve(capacity)) return false;
  while (groups_.size() < capacity) {
    [[maybe_unused]] bool pushed = groups_.Push(Group{});
  }
  return true;
}

ProcessSlices::Group& ProcessSlices::FindGroup(JobId job, Priority priority) {
  const uint64_t hash =
      (static_cast<uint64_t>(job) ^ static_cast<uint64_t>(priority) << 32) * 0x9e3779b97f4a7c15u;
  for (size_t i = static_cast<size_t>(hash >> 32);; ++i) {
    Group& group = groups_[i & (groups_.size() - 1)];
    if (group.members == 0) group = {job, priority, 0};
    if (group.job == job && group.priority == priority) return group;
  }
}

TimePoint ProcessSlices::Observe(std::span<QueueRecord* const> active, bool window, TimePoint now,
                                 ControlSink& sink) {
  Account(now);
  window_ = window;
  released_ = false;
  if (division_ != Division::kBesideHolding) return kNever;
  Count(active, now);
  turn_.ready = turn_.competing = 0;
  bool longer_ready = false;
  bool absent_work = false;
  may_share_ = true;
  for (const ProcessRecord* process : processes_) {
    absent_work |= process->absent_work;
    if (!IsShortest(*process)) {
      longer_ready |= process->ready && !process->leaves_gaps;
      continue;
    }
    turn_.ready += process->ready;
    turn_.competing += process->competes;
    may_share_ &= !process->ready || process->short_commands;
  }
  const TimePoint ask_equals = in_order_.Observe(processes_, now);
  if (!window && longer_ready && turn_.competing != 0) conflict_until_ = now + kKeep;
  const bool conflict = now < conflict_until_;
  leader_turns_ = follows_ && leader_->slices.take_turns();
  released_ = window || conflict || absent_work || (follows_ && !leader_turns_);
  if (released_) {
    // The time is not counted meanwhile, so what is retired must not be counted either.
    for (ProcessRecord* process : processes_) process->on = false;
    ForgetWeights();
    return std::min(conflict ? conflict_until_ : kNever, ask_equals);
  }
  return std::min(ObserveShortest(active, now, sink), ask_equals);
}

// Of those with the shortest slice: decides whether they share the device.
TimePoint ProcessSlices::ObserveShortest(std::span<QueueRecord* const> active, TimePoint now,
                                         ControlSink& sink) {
  if (turn_.competing == 0) return kNever;
  TimePoint next = Weigh(now, active, sink);
  const bool shared = sharing_;
  // Sharing goes on while one of them pauses.
  sharing_ = !follows_ && may_share_ && (turn_.competing > 1 ? trial_.Pays(processes_, now) : sharing_);
  if (sharing_ != shared) ForgetWeights();
  if (turn_.competing < 2) return kNever;
  if (sharing_) {
    // What begins to share with this decision is counted from the next one on. A more urgent process may come
    // more often than they are weighed again.
    const bool all_count =
        std::all_of(processes_.begin(), processes_.end(), [](const ProcessRecord* process) {
          return !process->competes || process->compared || process->weigh_at != kNever;
        });
    next = std::min(next, now + (all_count ? kWeighAgain : kAnswerTime));
  }
  // A device that follows another one tries nothing, and its last trial may have been due long ago.
  return may_share_ && !follows_ ? std::min(next, trial_.ask_at()) : next;
}

// Idle queues want nothing of the device.
void ProcessSlices::Count(std::span<QueueRecord* const> active, TimePoint now) {
  for (ProcessRecord* process : processes_) {
    process->ready = process->competes = process->absent_work = false;
    process->leaves_gaps = true;
    process->retired = process->retired_of_others;
  }
  gaps_ = false;
  for (const QueueRecord* queue : active) {
    ProcessRecord& process = *queue->process;
    process.retired += queue->retired;
    process.ready |= queue->IsEligible();
    process.competes |= queue->IsEligible() && queue->run;
    process.absent_work |= queue->absent && queue->Unfinished();
    process.leaves_gaps &= !queue->IsEligible() || LeavesGaps(*queue, now);
    gaps_ |= queue->launches.is_bound() && !IsShortest(process);
  }
}

void ProcessSlices::Report(DeviceId device, Priority above, TimePoint now, ControlSink& sink) {
  Account(now);
  // Otherwise the slices are the policy's, and stay as they are.
  if (!std::exchange(refreshed_, false) && division_ != Division::kBesideHolding) return;
  const ProcessRecord* holder = turn_.holder;
  if (turn_.competing == 0 && (holder == nullptr || !holder->ready || holder->off())) {
    // More urgent processes are at work. A process that is off the device stays off, and one of the others
    // stays on.
    const auto found = std::find_if(processes_.begin(), processes_.end(), [](const ProcessRecord* p) {
      return IsShortest(*p) && p->ready && !p->off();
    });
    holder = found == processes_.end() ? nullptr : *found;
  }
  for (ProcessRecord* process : processes_) {
    process->on = IsShortest(*process) && process->competes && !released_ && (sharing_ || process == holder);
    Set(device, *process, SliceOf(*process, holder, above, now), now, sink);
    SetTurn(device, *process, take_turns() && turn_takers_ > 1 && process == turn_.holder, sink);
  }
}

Duration ProcessSlices::SliceOf(const ProcessRecord& process, const ProcessRecord* holder, Priority above,
                                TimePoint now) const {
  if (division_ != Division::kBesideHolding) return process.slice;
  const bool shortest = IsShortest(process);
  if (window_) return !shortest && process.priority > above ? process.slice : kDriversSlice;
  if (!released_) {
    if (!shortest) return process.slice == kDriversSlice && in_order_.holds() ? kLongSlice : process.slice;
    if (sharing_) return kDriversSlice;
    // A process without work disturbs no other, and must get the device as soon as it has work.
    return process.ready && &process != holder ? kNoSlice : gaps_ ? kGapSlice : kShortestSlice;
  }
  if (now < conflict_until_) return kDriversSlice;
  // A process with only absent work must not have a longer slice than the others, and those at work no
  // shorter one.
  const bool stands = process.absent_work && !process.ready;
  return shortest == stands ? process.slice : kDriversSlice;
}

// Accounts the device's time since the last call to the processes that were on it.
void ProcessSlices::Account(TimePoint now) {
  const Duration elapsed = now - std::exchange(accounted_at_, now);
  if (division_ != Division::kBesideHolding) return;
  int64_t count = 0;
  for (const ProcessRecord* process : processes_) count += process->on;
  if (count == 0) return;
  const Duration share = elapsed / count;
  for (ProcessRecord* process : processes_) {
    if (process->on) process->on_device += share;
  }
}

// What has been counted so far says nothing about what comes.
void ProcessSlices::ForgetWeights() {
  for (ProcessRecord* process : processes_) {
    process->compared = false;
    process->weigh_at = kNever;
  }
}

// Computes the average length of a process's commands, after the process was on the device for long enough.
// Returns when to call it again at the latest.
TimePoint ProcessSlices::Weigh(TimePoint now, std::span<QueueRecord* const> active, ControlSink& sink) {
  TimePoint next = kNever;
  bool ask = false;
  for (ProcessRecord* process : processes_) {
    if (process->weigh_at == kNever) {
      if (process->compared ? process->on_device < kWeighAfter : !process->on) continue;
      ask = process->ask = true;
      process->weigh_at = now + kAnswerTime;
    } else if (now >= process->weigh_at) {
      process->weigh_at = kNever;
      const uint64_t before = std::exchange(process->seen_retired, process->retired);
      const Duration time = std::exchange(process->on_device, Duration::zero());
      if (!std::exchange(process->compared, true)) continue;
      // A queue may have been removed, and its count with it. Clients write the counts.
      constexpr uint64_t kMostCommands = uint64_t{1} << 32;
      const auto commands = static_cast<int64_t>(
          process->retired > before ? std::min(process->retired - before, kMostCommands) : 0);
      process->short_commands = time <= (process->short_commands ? 2 * kShort : kShort) * commands;
      (sharing_ ? process->in_sharing : process->in_turns).Add(time, commands);
    }
    next = std::min(next, process->weigh_at);
  }
  if (!ask) return next;
  for (const QueueRecord* queue : active) {
    if (queue->process->ask && queue->control.tracked) sink.Query(queue->id);
  }
  for (ProcessRecord* process : processes_) process->ask = false;
  return next;
}

void ProcessSlices::Set(DeviceId device, ProcessRecord& process, Duration slice, TimePoint now,
                        ControlSink& sink) {
  if (process.reported == slice) return;
  process.reported = slice;
  if (process.off()) process.off_since = now;
  sink.SetSlice(process.id, device, slice);
}

void ProcessSlices::SetTurn(DeviceId device, ProcessRecord& process, bool has_turn, ControlSink& sink) {
  if (process.has_turn == has_turn) return;
  process.has_turn = has_turn;
  sink.SetTurn(process.id, device, has_turn);
}

}  // namespace xsched::sched
