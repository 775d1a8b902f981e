// The claims that are prepared on this node: what was answered for each, and its CDI specification.
//
// The kubelet asks again after a restart of its own, and gets the same answer. What is prepared is in a file,
// the checkpoint, so that a restart of the agent changes nothing. Each change is in the checkpoint before a
// specification is written, and after one is removed: whenever the agent ends, the next one finds each
// specification that there may be. It writes those of the checkpoint anew (their folder is empty after a
// start of the machine), and removes all others.
//
// A driver numbers the files of its GPUs when it starts, so after a start of the machine a GPU may have the
// files that another one had. So specifications have the files of now. A request whose GPU is not there has
// no device in them until it is: its containers do not start, rather than with another GPU or none.
//
// Its lock is in prepared_claims.cc: gRPC's headers define some macros of base/mutex.h otherwise.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cdi/specification.h"
#include "kubernetes/dra_claim.h"

namespace xsched::kubernetes {

class PreparedClaims {
 public:
  // Throws CommandError: the checkpoint cannot be read.
  PreparedClaims(const std::string& checkpoint, std::string cdi_folder);
  ~PreparedClaims();
  PreparedClaims(const PreparedClaims&) = delete;
  PreparedClaims& operator=(const PreparedClaims&) = delete;

  // Writes the specifications of all claims anew, with the libraries of `installed` and the files of `gpus`,
  // which are also for those that come. Removes those of no claim. Throws CommandError.
  void WriteSpecifications(cli::CdiSpecification installed, std::vector<Gpu> gpus);

  // nullopt: it is not prepared.
  std::optional<PreparedClaim> Find(const std::string& uid) const;
  // Of all of them.
  std::vector<std::string> uids() const;
  // After an error it is as it was before. REQUIRES: WriteSpecifications was called.
  Result<> Add(const std::string& uid, const PreparedClaim& claim);
  // One that is not prepared is no error.
  Result<> Remove(const std::string& uid);

 private:
  struct Guarded;
  std::unique_ptr<Guarded> guarded_;
};

}  // namespace xsched::kubernetes
