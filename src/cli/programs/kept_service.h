// A service of another maker that programs need: started for the first of a user's programs, ended after the
// last one.
//
// Each program that uses it has a shared lock of the file `users`, as long as it or anything that it has
// started lives. One process in the background, the keeper, has an exclusive lock of the file `keeper`. When
// the keeper can lock `users` for itself, nobody uses the service. If the keeper is killed, the service goes
// on, and the next program starts another keeper.
#pragma once

#include <string>

namespace xsched::cli {

class Service {
 public:
  virtual ~Service() = default;
  virtual void Start() const = 0;
  virtual bool Answers() const = 0;
  // True if programs use it. Those that have closed their lock count as well.
  virtual bool HasPrograms() const = 0;
  // Asks it to end. It may end later.
  virtual void End() const = 0;
};

// Makes sure that the service runs for as long as this process, or the program that it becomes, lives. The
// two files are in `folder`, which is made, with its parent, for this user alone. Throws CommandError; then
// the service is not kept for this process.
void UseService(const Service& service, const std::string& folder);

}  // namespace xsched::cli
