// Texts of clients, as they may be shown to others: no character moves a cursor, changes a color, or turns
// the direction of what stands beside it.
#pragma once

#include <cstddef>
#include <string>

namespace xsched::server {

// UTF-8 up to the first NUL. '?' in place of each byte that belongs to no character, or to one of these.
std::string CleanText(const char* text, size_t size);

}  // namespace xsched::server
