// Memory: pages of this process, with a record of the agent that they belong to.
#pragma once

#include <hsa/hsa.h>

#include <cstddef>

namespace standin_hsa {

// What is left of an agent's memory.
size_t AvailableMemory(hsa_agent_t agent);
// Memory of a GPU; null: none is left.
void* AllocateOnGpu(hsa_agent_t gpu, size_t size);
void Free(void* memory);

}  // namespace standin_hsa
