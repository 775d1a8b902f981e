// A libFuzzer target for sessions of messages.
//   fuzz_session -max_len=2048 -dict=BUILD/generated/ipc/messages.dict [corpus]
#include "fuzz/server_script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static xsched::server::testing::ServerScript script;
  script.RunSession({data, size});
  return 0;
}
