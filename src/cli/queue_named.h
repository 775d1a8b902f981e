// Which queue a person means: by its number in `xsched list`, or by the handle that its program has
// (XQueueHandle), in decimal or, as XSched 1.2 prints handles, in hexadecimal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cli/server_session.h"

namespace xsched::cli {

// Accepts 17 and 0x11.
CLI::Validator QueueNumber();

// Returns the number that the server knows the queue by. Programs choose handles by themselves, so two may
// have the same one: throws CommandError with the numbers of these queues. REQUIRES: `text` passes
// QueueNumber.
uint64_t QueueNamed(ServerSession& server, const std::string& text);

}  // namespace xsched::cli
