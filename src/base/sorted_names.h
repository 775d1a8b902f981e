// Searches the generated tables of names, which are in alphabetical order.
#pragma once

#include <string.h>

namespace xsched {

// The index of the first item whose name is not before `name`; `count`: there is none.
template <typename Item, typename NameOf>
int LowerBound(const Item* items, int count, const char* name, NameOf&& name_of) {
  int low = 0;
  for (int high = count; low < high;) {
    const int middle = (low + high) / 2;
    if (strcmp(name_of(items[middle]), name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The index of `name`; -1: it is not among them.
inline int IndexOf(const char* name, const char* const* names, int count) {
  const int i = LowerBound(names, count, name, [](const char* item) { return item; });
  return i < count && strcmp(names[i], name) == 0 ? i : -1;
}

}  // namespace xsched
