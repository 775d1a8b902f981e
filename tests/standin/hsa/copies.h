// The copy engine. A separate thread does the copies whose signals allow it, one at a time.
#pragma once

#include <hsa/hsa.h>

#include <cstdint>
#include <functional>

namespace standin_hsa {

// `copy` runs when all of `after` are 0; then `completion` counts down.
void SubmitCopy(std::function<void()> copy, uint32_t count, const hsa_signal_t* after,
                hsa_signal_t completion);

}  // namespace standin_hsa
