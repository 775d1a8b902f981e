#include "sched/core/turns.h"

#include <algorithm>
#include <new>
#include <utility>

#include "sched/core/queue_record.h"

namespace xsched::sched {
namespace {

// How long a change of turns that is due waits for a more urgent process to come and finish. A change takes
// the device from all processes for most of a millisecond, and an urgent process that comes then is delayed
// (H200: p99 1.5 × alone, with changes every 5 ms). Right after an urgent process has finished, none is
// likely to come.
constexpr Duration kPatience = std::chrono::milliseconds(80);
// The longest turn for any timeslice, so that the next party does not stand still for 100 ms. It is longer
// than the watchdog waits, so that a stalled queue is noticed within one turn.
constexpr Duration kLongestTurn = std::chrono::milliseconds(85);

// A party that has used less than this of its turn gets it again. One that was lent a device for so long has
// had a turn.
constexpr Duration kWorthATurn = std::chrono::milliseconds(5);

ProcessRecord* MemberOn(const Party& party, const DeviceRecord& device) {
  for (ProcessRecord* member = party.members; member != nullptr; member = member->next_in_party) {
    if (member->device == &device) return member;
  }
  return nullptr;
}

bool WantsTurn(const ProcessRecord& process) {
  return process.competes && process.device->slices.take_turns();
}

}  // namespace

Turns::~Turns() {
  for (Party* party : ring_) delete party;
}

// ---- jobs ----

size_t Turns::FindJob(ProcessId process) const {
  auto before = [](const JobOfProcess& known, ProcessId id) { return known.process < id; };
  return static_cast<size_t>(std::lower_bound(jobs_.begin(), jobs_.end(), process, before) - jobs_.begin());
}

bool Turns::SetJob(ProcessId process, JobId job) {
  const size_t at = FindJob(process);
  const bool known = at < jobs_.size() && jobs_[at].process == process;
  if (job == JobId{}) {
    if (known) jobs_.Remove(at);
    return true;
  }
  if (known) {
    jobs_[at].job = job;
    return true;
  }
  if (!jobs_.Reserve(jobs_.size() + 1)) return false;
  jobs_.Insert(at, {process, job});
  return true;
}

JobId Turns::JobOf(ProcessId process) const {
  const size_t at = FindJob(process);
  return at < jobs_.size() && jobs_[at].process == process ? jobs_[at].job : JobId{};
}

// ---- parties ----

size_t Turns::FindParty(const PartyKey& key) const {
  auto before = [](const Party* party, const PartyKey& other) { return party->key < other; };
  return static_cast<size_t>(std::lower_bound(by_key_.begin(), by_key_.end(), key, before) - by_key_.begin());
}

void Turns::Detach(ProcessRecord& process, const PartyKey& key) {
  if (process.party == nullptr || process.party->key == key) return;
  process.left_party = process.party;
  Unlink(process);
}

void Turns::Unlink(ProcessRecord& process) {
  Party* const party = process.party;
  ProcessRecord** link = &party->members;
  while (*link != &process) link = &(*link)->next_in_party;
  *link = process.next_in_party;
  process.party = nullptr;
  process.next_in_party = nullptr;
  party->working_since = kNever;
  if (party->members == nullptr) by_key_.Remove(FindParty(party->key));
}

bool Turns::Join(ProcessRecord& process, const PartyKey& key) {
  Party* const left = std::exchange(process.left_party, nullptr);
  if (process.party != nullptr) return true;
  const size_t at = FindParty(key);
  Party* party = at < by_key_.size() && by_key_[at]->key == key ? by_key_[at] : nullptr;
  if (party == nullptr) {
    party = left != nullptr && left->members == nullptr ? left : MakeParty(left);
    if (party == nullptr) return false;
    party->key = key;
    by_key_.Insert(at, party);
  }
  process.party = party;
  process.next_in_party = party->members;
  party->members = &process;
  process.device->slices.turn().keeps_until = TimePoint{};  // its party may have the turn
  return true;
}

// A new one, without members. Null: out of memory.
Party* Turns::MakeParty(const Party* beside) {
  const size_t room = ring_.size() + 1;
  if (!by_key_.Reserve(room) || !ring_.Reserve(room) || !playing_.Reserve(room)) return nullptr;
  auto* party = new (std::nothrow) Party;
  if (party == nullptr) return nullptr;
  // Behind all waiting parties, before those that have the turn.
  size_t place = ring_.size();
  while (place > 0 && ring_[place - 1] != beside && (beside != nullptr || ring_[place - 1]->has_turn))
    --place;
  ring_.Insert(place, party);
  return party;
}

bool Turns::IsOn(const PartyKey& key, const DeviceRecord& device) const {
  const size_t at = FindParty(key);
  return at < by_key_.size() && by_key_[at]->key == key && MemberOn(*by_key_[at], device) != nullptr;
}

void Turns::DropEmpty() {
  for (size_t i = ring_.size(); i-- > 0;) {
    if (ring_[i]->members == nullptr) Remove(ring_[i]);
  }
}

void Turns::Leave(ProcessRecord& process) {
  process.left_party = nullptr;
  Party* const party = process.party;
  if (party == nullptr) return;
  Unlink(process);
  if (party->members == nullptr) Remove(party);
}

// REQUIRES: the party is empty.
void Turns::Remove(Party* party) {
  for (Array<Party*>* list : {&ring_, &playing_}) {
    for (size_t i = list->size(); i-- > 0;) {
      if ((*list)[i] == party) list->Remove(i);
    }
  }
  delete party;
}

// ---- turns ----

TimePoint Turns::Update(std::span<DeviceRecord* const> devices, TimePoint now, Duration turn) {
  CountUse(devices, now);
  bool wanted = false;
  bool contended = false;
  bool urgent_at_work = false;
  bool urgent_finished = false;
  for (DeviceRecord* device : devices) {
    if (!device->slices.take_turns()) continue;
    ProcessSlices::Turn& here = device->slices.turn();
    const bool was_at_work = here.urgent_at_work;
    here.urgent_at_work = here.ready != 0 && here.competing == 0;
    urgent_at_work |= here.urgent_at_work;
    urgent_finished |= was_at_work && here.competing != 0;
    wanted |= here.competing != 0;
    contended |= here.competing > 1;
  }
  if (!wanted) return kNever;
  DropThoseWithoutWork();
  const bool over = contended && now >= until_ && (now >= latest_ || (urgent_finished && !urgent_at_work));
  const bool begins = over || playing_.empty();
  if (begins) Begin(now, turn);

  TimePoint next = contended ? latest_ : kNever;
  for (DeviceRecord* device : devices) {
    if (!device->slices.take_turns()) continue;
    ProcessSlices::Turn& here = device->slices.turn();
    if (here.competing == 0) continue;
    const bool keeps = !begins && here.holder != nullptr && here.holder->competes;
    if (keeps && here.holder->party->has_turn) continue;
    ProcessRecord* const with_turn = WithTurn(*device);
    if (keeps && (with_turn == nullptr || now < here.keeps_until)) {
      if (with_turn != nullptr) next = std::min(next, here.keeps_until);
      continue;
    }
    ProcessRecord* const holder = with_turn != nullptr ? with_turn : NextInRing(*device);
    if (holder == here.holder) continue;
    here.holder = holder;
    here.keeps_until = now + std::min(turn, kLongestTurn);
    device->due = true;
  }
  MarkUse(devices, now);
  return next;
}

// Counts for how long each party has had a device that others want as well, since the last decision, in its
// turn or lent.
void Turns::CountUse(std::span<DeviceRecord* const> devices, TimePoint now) {
  for (DeviceRecord* device : devices) {
    const ProcessRecord* holder = device->slices.turn().holder;
    if (holder == nullptr || holder->party == nullptr) continue;
    const TimePoint since = std::exchange(holder->party->working_since, kNever);
    if (since == kNever) continue;
    holder->party->used += now - since;
    holder->party->used_until = now;
  }
}

void Turns::MarkUse(std::span<DeviceRecord* const> devices, TimePoint now) {
  for (DeviceRecord* device : devices) {
    const ProcessRecord* holder = device->slices.turn().holder;
    if (holder == nullptr || holder->party == nullptr) continue;
    if (WantsTurn(*holder) && device->slices.turn().competing > 1) holder->party->working_since = now;
  }
}

// Orders the ring: first the parties that could not use their turn, then the waiting ones, then those that
// were lent a device for as long as `worth`, in the order in which they gave it back, and last those that
// have used their turn.
void Turns::OrderByUse(Duration worth) {
  const auto place = [worth](const Party& party) {
    const bool used = party.used >= worth;
    if (party.has_turn) return std::pair(used ? 3 : 0, TimePoint{});
    return used ? std::pair(2, party.used_until) : std::pair(1, TimePoint{});
  };
  for (size_t i = 1; i < ring_.size(); ++i) {
    Party* const party = ring_[i];
    size_t at = i;
    for (; at > 0 && place(*ring_[at - 1]) > place(*party); --at) ring_[at] = ring_[at - 1];
    ring_[at] = party;
  }
}

// Adds the turn that ends now. A party that resumes after a pause gets no credit for the time that it did not
// use.
void Turns::CountTimeHad(Duration worth) {
  Duration least = Duration::max();
  for (Party* party : ring_) {
    if (party->used >= worth) party->had += std::exchange(party->used, Duration::zero());
    bool competes = false;
    for (ProcessRecord* member = party->members; member != nullptr; member = member->next_in_party) {
      competes |= WantsTurn(*member);
    }
    if (!competes || !party->competed) party->had = Duration::zero();
    if (!competes) party->used = Duration::zero();
    if (competes && party->competed) least = std::min(least, party->had);
    party->competed = competes;
  }
  if (least == Duration::max()) return;
  for (Party* party : ring_) party->had = std::max(party->had - least, Duration::zero());
}

// How much less time the parties that have the turn have had than the one with the most.
Duration Turns::BehindOthers() const {
  Duration most{};
  for (const Party* party : ring_) most = std::max(most, party->had);
  Duration least = most;
  for (const Party* party : playing_) least = std::min(least, party->had);
  return most - least;
}

// Gives the turn to the party that has waited longest, and to all others that need only devices that are
// still free.
void Turns::Begin(TimePoint now, Duration turn) {
  const Duration worth = std::min(turn, kWorthATurn);
  OrderByUse(worth);
  CountTimeHad(worth);
  latest_ = now + std::min(turn + kPatience, kLongestTurn);
  for (Party* party : playing_) party->has_turn = false;
  playing_.Clear();
  size_t waiting = 0;
  for (size_t i = 0; i < ring_.size(); ++i) {
    Party* party = ring_[i];
    bool competes = false;
    bool fits = true;
    for (ProcessRecord* member = party->members; member != nullptr; member = member->next_in_party) {
      if (!WantsTurn(*member)) continue;
      competes = true;
      fits &= !member->device->given;
    }
    if (!competes || !fits) {
      ring_[waiting++] = party;
      continue;
    }
    party->has_turn = true;
    [[maybe_unused]] bool pushed = playing_.Push(party);  // reserved by Join
    for (ProcessRecord* member = party->members; member != nullptr; member = member->next_in_party) {
      member->device->given |= WantsTurn(*member);
    }
  }
  for (Party* party : playing_) {
    ring_[waiting++] = party;
    for (ProcessRecord* member = party->members; member != nullptr; member = member->next_in_party) {
      member->device->given = false;
    }
  }
  until_ = std::min(latest_, now + turn + BehindOthers());
}

// A party without work has had its turn. A held party keeps it.
void Turns::DropThoseWithoutWork() {
  for (size_t i = playing_.size(); i-- > 0;) {
    Party* party = playing_[i];
    bool keeps = false;
    for (ProcessRecord* member = party->members; member != nullptr; member = member->next_in_party) {
      keeps |= member->ready;
    }
    if (keeps) continue;
    party->has_turn = false;
    playing_.Remove(i);
  }
}

ProcessRecord* Turns::WithTurn(const DeviceRecord& device) const {
  for (const Party* party : playing_) {
    ProcessRecord* member = MemberOn(*party, device);
    if (member != nullptr && member->competes) return member;
  }
  return nullptr;
}

// REQUIRES: a process competes on the device.
ProcessRecord* Turns::NextInRing(const DeviceRecord& device) const {
  for (const Party* party : ring_) {
    ProcessRecord* member = MemberOn(*party, device);
    if (member != nullptr && member->competes) return member;
  }
  return nullptr;
}

}  // namespace xsched::sched
