// Counts heap allocations that given libraries make. A program that links this has its own malloc and calloc.
#pragma once

#include <cstdint>
#include <span>

namespace xsched::bench {

// Counts, from now on, those of the loaded libraries whose paths contain one of `names`.
void CountAllocationsOf(std::span<const char* const> names);
uint64_t Allocations();

}  // namespace xsched::bench
