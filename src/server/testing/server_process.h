// A real xserver in a folder of its own, for tests and benchmarks.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "ipc/client.h"

namespace xsched::server::testing {

// A folder that is removed with everything in it when this object is destroyed.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct ServerLimits {
  long descriptors = 0;    // 0: as ours
  long address_space = 0;  // bytes; 0: as ours
  int errors_fd = -1;      // its stderr; -1: what errors() reads
};

class ServerProcess {
 public:
  // Runs `program` with --socket and `arguments`. Its messages go to errors().
  ServerProcess(const std::string& program, const std::string& socket,
                std::vector<std::string> arguments = {}, ServerLimits limits = {});
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // True if it listens. False: it has ended.
  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  ipc::SocketPath socket() const;
  void Signal(int signal) const;
  // Its exit status, or minus the signal that ended it; -1000 if it still runs after `timeout_ms`.
  int WaitForExit(int timeout_ms = 5000);
  std::string errors() const;

  // From /proc: resident memory, open descriptors, processor time (in clock ticks).
  long resident_kb() const;
  int descriptors() const;
  long cpu_ticks() const;
  double cpu_seconds() const;

 private:
  std::string socket_;
  std::string errors_path_;
  pid_t pid_ = -1;
  bool ready_ = false;
};

}  // namespace xsched::server::testing
