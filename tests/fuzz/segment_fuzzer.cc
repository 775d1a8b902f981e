// A libFuzzer target for what clients write into their segments. fuzz_segment -max_len=2048 [corpus]
#include "fuzz/server_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static xsched::server::testing::ServerScript script;
  script.RunSegment({data, size});
  return 0;
}
