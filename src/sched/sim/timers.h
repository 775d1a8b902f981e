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
    if (due < before) Rise(number);
    if (due > before) Sink(number);
  }
  // The time of the first one; kNever: nothing is due, or there are none.
  TimePoint next() const { return heap_.empty() ? kNever : due_[heap_[0]]; }
  // Of several that are due at the same time, the one with the smallest number. REQUIRES: there are any.
  size_t first() const { return heap_[0]; }

 private:
  bool IsBefore(size_t number, size_t other) const {
    return due_[number] != due_[other] ? due_[number] < due_[other] : number < other;
  }
  void Put(size_t number, size_t place) {
    heap_[place] = number;
    places_[number] = place;
  }
  void Rise(size_t number) {
    size_t place = places_[number];
    for (; place > 0 && IsBefore(number, heap_[(place - 1) / 2]); place = (place - 1) / 2)
      Put(heap_[(place - 1) / 2], place);
    Put(number, place);
  }
  void Sink(size_t number) {
    size_t place = places_[number];
    for (size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
      if (child + 1 < heap_.size() && IsBefore(heap_[child + 1], heap_[child])) ++child;
      if (!IsBefore(heap_[child], number)) break;
      Put(heap_[child], place);
    }
    Put(number, place);
  }

  std::vector<TimePoint> due_;  // of each number
  std::vector<size_t> places_;  // of each number, in heap_
  std::vector<size_t> heap_;    // numbers; none is due before the one at half of its place
};

}  // namespace xsched::sched::sim
