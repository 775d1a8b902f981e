// Which of many things is due first, each known by its number. A binary heap: to change one takes a number of
// steps that grows with the logarithm of how many there are.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sched/core/types.h"

namespace xsched::sched::sim {

class Timers {
 public:
  // Nothing is due.
  explicit Timers(size_t count) : due_(count, kNever), places_(count), heap_(count) {
    for (size_t i = 0; i < count; ++i) places_[i] = heap_[i] = i;
  }

  void Set(size_t number, TimePoint due) {
    const TimePoint before = std::exchange(due_[number], due);
    if (due < before) Rise(places_[number]);
    if (due > before) Sink(places_[number]);
  }
  // The time of the first one; kNever: nothing is due, or there are none.
  TimePoint next() const { return heap_.empty() ? kNever : due_[heap_[0]]; }
  // Of several that are due at the same time, the one with the smallest number. REQUIRES: there are any.
  size_t first() const { return heap_[0]; }

 private:
  bool IsBefore(size_t place, size_t other) const {
    const size_t number = heap_[place];
    const size_t others = heap_[other];
    return due_[number] != due_[others] ? due_[number] < due_[others] : number < others;
  }
  void Swap(size_t place, size_t other) {
    std::swap(heap_[place], heap_[other]);
    places_[heap_[place]] = place;
    places_[heap_[other]] = other;
  }
  void Rise(size_t place) {
    for (; place > 0 && IsBefore(place, (place - 1) / 2); place = (place - 1) / 2)
      Swap(place, (place - 1) / 2);
  }
  void Sink(size_t place) {
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && IsBefore(child + 1, child)) ++child;
      if (!IsBefore(child, place)) return;
      Swap(place, child);
      place = child;
    }
  }

  std::vector<TimePoint> due_;  // of each number
  std::vector<size_t> places_;  // of each number, in heap_
  std::vector<size_t> heap_;    // numbers; none is due before the one at half of its place
};

}  // namespace xsched::sched::sim
