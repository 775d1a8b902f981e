// Which of many things is due first, each known by its number. A binary heap: to change one takes a number of
// steps that grows with the logarithm of how many there are.
#pragma once

#include <cstddef>
#include <vector>

#include "sched/core/types.h"

namespace xsched::sched::sim {

class Timers {
 public:
  // Nothing is due. One more than these never is, so that there always is a first one.
  explicit Timers(size_t count) : places_(count + 1), heap_(count + 1) {
    for (size_t i = 0; i <= count; ++i) Put({kNever, i}, i);
  }

  void Set(size_t number, TimePoint due) {
    const Timer timer{due, number};
    const TimePoint before = heap_[places_[number]].due;
    if (due < before) Rise(timer);
    if (due > before) Sink(timer);
  }
  // The time of the first one; kNever: nothing is due, or there are none.
  TimePoint next() const { return heap_[0].due; }
  // Of several that are due at the same time, the one with the smallest number. REQUIRES: one is due.
  size_t first() const { return heap_[0].number; }

 private:
  struct Timer {
    TimePoint due = kNever;
    size_t number = 0;

    bool IsBefore(const Timer& other) const {
      return due != other.due ? due < other.due : number < other.number;
    }
  };

  void Put(const Timer& timer, size_t place) {
    heap_[place] = timer;
    places_[timer.number] = place;
  }
  // The timer's due time has changed: it moves to its place.
  void Rise(const Timer& timer) {
    size_t place = places_[timer.number];
    for (; place > 0 && timer.IsBefore(heap_[(place - 1) / 2]); place = (place - 1) / 2)
      Put(heap_[(place - 1) / 2], place);
    Put(timer, place);
  }
  void Sink(const Timer& timer) {
    size_t place = places_[timer.number];
    for (size_t child; (child = 2 * place + 1) < heap_.size(); place = child) {
      if (child + 1 < heap_.size() && heap_[child + 1].IsBefore(heap_[child])) ++child;
      if (!heap_[child].IsBefore(timer)) break;
      Put(heap_[child], place);
    }
    Put(timer, place);
  }

  std::vector<size_t> places_;  // of each number, in heap_
  std::vector<Timer> heap_;     // none is due before the one at half of its place
};

}  // namespace xsched::sched::sim
