// A libFuzzer target for what a server sends: to an agent, with any words in the memory that it shares with
// it, and to tools.
#include "fuzz/client_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static xsched::fuzz::ClientScript script;
  script.Run({data, size});
  return 0;
}
