// Memory: pages of this process, with a record of the agent that they belong to.
#pragma once

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstddef>

namespace standin_hsa {

// What is left of an agent's memory.
size_t AvailableMemory(hsa_agent_t agent);
// Memory of a GPU; null: none is left.
void* AllocateOnGpu(hsa_agent_t gpu, size_t size);
void Free(void* memory);
// Counts memory of an agent that has no address yet. False: none is left.
bool TakeMemory(hsa_agent_t agent, size_t size);
void GiveMemoryBack(hsa_agent_t agent, size_t size);
// The agent that a pool belongs to.
hsa_agent_t OwnerOf(hsa_amd_memory_pool_t pool);

}  // namespace standin_hsa
