// The table behind cuGetProcAddress: from which version on which symbol has which name.
#pragma once

#include <cstddef>

namespace standin {

struct Symbol {
  const char* name;  // without suffixes
  int version;
  bool per_thread;
  void* function;
};
extern const Symbol symbols[];  // generated
extern const size_t symbol_count;

}  // namespace standin
