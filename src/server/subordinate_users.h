// Whose the users are that a user may become in user namespaces (subuid(5), 65,536 for each user by default).
// What is limited or shared out by user counts for the owner: otherwise one person would have the shares of
// all these users.
//
// A system account's subordinate users stay users of their own: an administrator's container engine uses them
// to keep containers apart.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xsched::server {

class SubordinateUsers {
 public:
  // There are none.
  SubordinateUsers() = default;
  // Those of this file. A file that is missing has none, and lines that cannot be read are left out.
  explicit SubordinateUsers(const std::string& path);

  // The user itself, if it is nobody's subordinate.
  uid_t OwnerOf(uid_t user) const;

 private:
  struct Range {
    uint64_t first;
    uint64_t count;
    uid_t owner;
  };
  void MakeDisjoint();

  std::vector<Range> ranges_;  // the lowest first
};

}  // namespace xsched::server
