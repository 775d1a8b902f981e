#include "server/subordinate_users.h"

#include <pwd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string_view>

namespace xsched::server {
namespace {

// Accounts of persons begin with this number (UID_MIN of login.defs(5)).
constexpr uint64_t kFirstPerson = 1000;

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > ~uid_t{0}) return std::nullopt;
  return number;
}

std::optional<uint64_t> UserNamed(const std::string& name) {
  if (const std::optional<uint64_t> number = NumberIn(name)) return number;
  const passwd* user = getpwnam(name.c_str());
  return user == nullptr ? std::nullopt : std::optional<uint64_t>(user->pw_uid);
}

}  // namespace

SubordinateUsers::SubordinateUsers(const std::string& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t behind_name = line.find(':');
    const size_t behind_first = line.find(':', behind_name + 1);
    if (behind_name == std::string::npos || behind_first == std::string::npos) continue;
    const std::string_view text = line;
    const auto first = NumberIn(text.substr(behind_name + 1, behind_first - behind_name - 1));
    const auto count = NumberIn(text.substr(behind_first + 1));
    if (!first || !count) continue;
    const std::optional<uint64_t> owner = UserNamed(line.substr(0, behind_name));
    if (owner && *owner >= kFirstPerson) ranges_.push_back({*first, *count, static_cast<uid_t>(*owner)});
  }
  MakeDisjoint();
}

// Where ranges overlap, the one that begins first counts, and of two that begin together the first line.
void SubordinateUsers::MakeDisjoint() {
  std::stable_sort(ranges_.begin(), ranges_.end(),
                   [](const Range& one, const Range& other) { return one.first < other.first; });
  uint64_t end = 0;
  for (Range& range : ranges_) {
    const uint64_t own_end = range.first + range.count;
    range.first = std::max(range.first, end);
    range.count = std::max(own_end, range.first) - range.first;
    end = range.first + range.count;
  }
  std::erase_if(ranges_, [](const Range& range) { return range.count == 0; });
}

uid_t SubordinateUsers::OwnerOf(uid_t user) const {
  const auto behind = std::upper_bound(ranges_.begin(), ranges_.end(), user,
                                       [](uid_t of, const Range& range) { return of < range.first; });
  if (behind == ranges_.begin()) return user;
  const Range& range = *(behind - 1);
  return user - range.first < range.count ? range.owner : user;
}

}  // namespace xsched::server
