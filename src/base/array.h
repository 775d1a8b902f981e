// A growable array for code that runs in foreign processes, in place of std::vector: it returns lack of
// memory as a value, and needs no libstdc++ at run time. Elements are moved with memcpy.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <cstddef>
#include <span>
#include <type_traits>

namespace xsched {

template <typename T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  Array(Array&& other) noexcept : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  ~Array() { free(data_); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

  // False: out of memory; nothing has changed.
  [[nodiscard]] bool Reserve(size_t capacity) {
    if (capacity <= capacity_) return true;
    size_t grown = capacity_ * 2 > capacity ? capacity_ * 2 : capacity;
    void* data = realloc(static_cast<void*>(data_), grown * sizeof(T));
    if (data == nullptr) return false;
    data_ = static_cast<T*>(data);
    capacity_ = grown;
    return true;
  }
  [[nodiscard]] bool Push(const T& value) {
    T copy = value;  // `value` may be an element of this array
    if (!Reserve(size_ + 1)) return false;
    data_[size_++] = copy;
    return true;
  }
  // Adds `count` elements, whose values are not set. False: out of memory; nothing has changed.
  [[nodiscard]] bool Append(size_t count) {
    if (!Reserve(size_ + count)) return false;
    size_ += count;
    return true;
  }
  // Adds an element, whose value is not set. REQUIRES: room has been reserved.
  T& Extend() { return data_[size_++]; }
  // Puts `value` before element `i`. REQUIRES: room has been reserved.
  void Insert(size_t i, const T& value) {
    for (size_t j = size_; j > i; --j) data_[j] = data_[j - 1];
    data_[i] = value;
    ++size_;
  }
  void Pop() { --size_; }
  void Clear() { size_ = 0; }
  // Removes element `i`; the last one takes its place.
  void RemoveUnordered(size_t i) { data_[i] = data_[--size_]; }
  // Removes element `i`. The order of the others stays.
  void Remove(size_t i) { memmove(static_cast<void*>(data_ + i), data_ + i + 1, (--size_ - i) * sizeof(T)); }
  // Removes the first `count` elements; the order of the others stays.
  void RemoveFront(size_t count) {
    size_ -= count;
    for (size_t j = 0; j < size_; ++j) data_[j] = data_[j + count];
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace xsched
