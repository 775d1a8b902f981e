#include "server/tenants/audit_log.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "server/limits.h"

namespace xsched::server {
namespace {

// Of one user: so many at once, and so many per second.
constexpr double kMostRecords = 40;
constexpr double kRecordsPerSecond = 4;

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAllowed:
      return "allowed";
    case Verdict::kCorrected:
      return "corrected";
    case Verdict::kRefused:
      return "refused";
  }
  return "?";
}

// JOURNAL_STREAM names the file that our output was when we were started.
bool OutputIsJournal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat output {};
  return stream != nullptr && fstat(STDERR_FILENO, &output) == 0 &&
         fmt::format("{}:{}", output.st_dev, output.st_ino) == stream;
}

UniqueFd ConnectTo(const char* path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) return UniqueFd();
  memcpy(address.sun_path, path, strlen(path));
  UniqueFd journal(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (journal && connect(journal.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    journal.Reset();
  return journal;
}

}  // namespace

AuditLog::AuditLog(const char* journal, SubordinateUsers subordinates)
    : subordinates_(std::move(subordinates)), others_{kMostRecords, TimePoint{}, 0} {
  if (OutputIsJournal()) journal_ = ConnectTo(journal);
}

void AuditLog::Add(const AuditRecord& record, TimePoint now) noexcept try {
  Allowance& allowance = AllowanceOf(record.who, now);
  if (!MayAdd(allowance, now)) return;
  std::string line = LineOf(record);
  if (allowance.left_out != 0)
    line += fmt::format(" ({} records of this user before it were left out)", allowance.left_out);
  allowance.left_out = 0;
  if (!SendToJournal(record, line)) spdlog::info("{}", line);
} catch (const std::exception&) {
}

// Administrators have an allowance of their own, so that nobody else can keep their changes out of the log.
// Others may have the same owner, such as root in a container. They have another allowance.
AuditLog::Allowance& AuditLog::AllowanceOf(const Peer& who, TimePoint now) {
  const std::pair user(subordinates_.OwnerOf(who.uid), who.is_admin);
  const auto known = users_.find(user);
  if (known != users_.end()) return known->second;
  if (users_.size() >= kMaxUsersWithAccounts) ForgetFull(now);
  if (users_.size() >= kMaxUsersWithAccounts && !who.is_admin) return others_;
  return users_.emplace(user, Allowance{kMostRecords, now, 0}).first->second;
}

// Those that a user would get anew.
void AuditLog::ForgetFull(TimePoint now) {
  std::erase_if(users_, [now](const auto& entry) {
    return entry.second.left_out == 0 && RecordsAt(entry.second, now) >= kMostRecords;
  });
}

double AuditLog::RecordsAt(const Allowance& allowance, TimePoint now) {
  const double passed = InSeconds(std::max(now - allowance.since, Duration::zero()));
  return std::min(kMostRecords, allowance.records + passed * kRecordsPerSecond);
}

bool AuditLog::MayAdd(Allowance& allowance, TimePoint now) {
  allowance.records = RecordsAt(allowance, now);
  allowance.since = now;
  if (allowance.records < 1) {
    ++allowance.left_out;
    ++left_out_;
    return false;
  }
  allowance.records -= 1;
  return true;
}

bool AuditLog::SendToJournal(const AuditRecord& record, const std::string& line) const {
  if (!journal_) return false;
  const std::string entry = JournalEntryOf(record, line);
  return send(journal_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(entry.size());
}

std::string LineOf(const AuditRecord& record) {
  std::string line = fmt::format("pid {} (user {}): {}", record.who.pid, record.who.uid, record.what);
  if (!record.target.empty()) line += fmt::format(" of {}", record.target);
  if (!record.from.empty()) line += fmt::format(": {} -> {}", record.from, record.to);
  if (record.from.empty() && !record.to.empty()) line += fmt::format(": {}", record.to);
  line += fmt::format(": {}", NameOf(record.verdict));
  if (!record.reason.empty()) line += fmt::format(" ({})", record.reason);
  return line;
}

std::string JournalEntryOf(const AuditRecord& record, const std::string& line) {
  std::string entry;
  auto add = [&entry](const char* name, std::string value) {
    if (value.empty()) return;
    std::replace(value.begin(), value.end(), '\n', ' ');  // it would begin another field
    entry += fmt::format("{}={}\n", name, value);
  };
  add("MESSAGE", line);
  add("PRIORITY", record.verdict == Verdict::kAllowed ? "6" : "5");  // info, notice
  add("SYSLOG_IDENTIFIER", "xserver");
  add("XSCHED_AUDIT", record.what);
  add("XSCHED_VERDICT", NameOf(record.verdict));
  add("XSCHED_PID", std::to_string(record.who.pid));
  add("XSCHED_UID", std::to_string(record.who.uid));
  add("XSCHED_TENANT", record.tenant);
  add("XSCHED_TARGET", record.target);
  add("XSCHED_FROM", record.from);
  add("XSCHED_TO", record.to);
  add("XSCHED_REASON", record.reason);
  return entry;
}

}  // namespace xsched::server
