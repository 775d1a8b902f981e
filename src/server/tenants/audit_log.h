// The record of who changed what, or was not allowed to: hints, the policy, levels, the tenants' file. Each
// record is one line of the log; under systemd it has fields of its own for the journal (docs/tenants.md).
//
// A user who makes many records soon makes fewer, and so do subordinate users together with their owner. How
// many were left out is said by the next one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "server/access.h"
#include "server/subordinate_users.h"

namespace xsched::server {

enum class Verdict : uint8_t { kAllowed, kCorrected, kRefused };

struct AuditRecord {
  const char* what = "";  // "hints", "policy", "tenants", …
  Peer who{};
  std::string tenant{};  // whose request counts; empty: not known
  std::string target{};  // "queue 3", "pid 7"; empty: the server
  std::string from{};
  std::string to{};
  Verdict verdict = Verdict::kAllowed;
  std::string reason{};  // of a correction or a refusal
};

class AuditLog {
 public:
  static constexpr const char* kJournal = "/run/systemd/journal/socket";

  // `journal`: the socket of systemd's journal, used if systemd has connected our output to the journal.
  explicit AuditLog(const char* journal = kJournal, SubordinateUsers subordinates = {});

  // Never waits, and never fails.
  void Add(const AuditRecord& record, TimePoint now) noexcept;
  uint64_t left_out() const { return left_out_; }

 private:
  struct Allowance {
    double records;
    TimePoint since;
    uint64_t left_out;
  };
  static double RecordsAt(const Allowance& allowance, TimePoint now);
  bool MayAdd(Allowance& allowance, TimePoint now);
  Allowance& AllowanceOf(const Peer& who, TimePoint now);
  void ForgetFull(TimePoint now);
  bool SendToJournal(const AuditRecord& record, const std::string& line) const;

  const SubordinateUsers subordinates_;
  std::map<std::pair<uid_t, bool>, Allowance> users_;  // by owner, and whether it is an administrator
  Allowance others_;
  uint64_t left_out_ = 0;
  UniqueFd journal_;
};

// "pid 7 (user 1000): hints of queue 3: priority 0 -> priority 10: allowed"
std::string LineOf(const AuditRecord& record);
// In the format of the journal's native protocol.
std::string JournalEntryOf(const AuditRecord& record, const std::string& line);

}  // namespace xsched::server
