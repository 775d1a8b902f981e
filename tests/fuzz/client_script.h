// Turns bytes into what a hostile server does to an honest client: messages in any order and shape, and words
// in the memory that they share. The clients are a process's agent in virtual time, and tools.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fuzz/bytes.h"

namespace xsched::fuzz {

class ClientScript {
 public:
  ClientScript();
  ~ClientScript();

  // Aborts if a queue is still held after the server has gone.
  void Run(std::span<const uint8_t> bytes);

 private:
  class Process;
  class Answers;

  void AskByTools(Bytes& bytes);
  static void Record(Bytes& bytes);

  std::unique_ptr<Process> process_;
  std::unique_ptr<Answers> answers_;
};

}  // namespace xsched::fuzz
