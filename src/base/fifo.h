// First in, first out, for code that runs in foreign processes (see array.h).
#pragma once

#include <utility>

#include "base/array.h"

namespace xsched {

template <typename T>
class Fifo {
 public:
  bool empty() const { return size() == 0; }
  size_t size() const { return items_.size() - head_; }
  T& operator[](size_t i) { return items_[head_ + i]; }
  T& front() { return items_[head_]; }
  T& back() { return items_.back(); }

  // False: out of memory; nothing has changed.
  [[nodiscard]] bool Reserve() { return items_.Reserve(items_.size() + 1); }
  [[nodiscard]] bool Push(const T& item) { return items_.Push(item); }
  void Pop() {
    ++head_;
    // The rest is moved when half of the items are gone, so each item moves at most once on average.
    if (head_ * 2 < items_.size()) return;
    items_.RemoveFront(head_);
    head_ = 0;
  }
  // Empties it, and returns what was in it.
  Fifo TakeAll() {
    Fifo all(std::move(*this));
    Clear();
    return all;
  }
  void Clear() {
    items_.Clear();
    head_ = 0;
  }

 private:
  Array<T> items_;
  size_t head_ = 0;
};

}  // namespace xsched
