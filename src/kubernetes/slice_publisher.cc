#include "kubernetes/slice_publisher.h"

#include <fmt/format.h>

#include "kubernetes/json_members.h"
#include "kubernetes/say.h"

namespace xsched::kubernetes {

using nlohmann::json;

void SlicePublisher::Want(std::vector<json> devices) { wanted_ = {std::move(devices), {}}; }

bool SlicePublisher::Publish() {
  Result<> done = TryToPublish();
  const std::string failed = done ? "" : done.error().text();
  if (!failed.empty() && failed != said_) Say("ResourceSlices are not published: " + failed);
  said_ = failed;
  return static_cast<bool>(done);
}

Result<> SlicePublisher::TryToPublish() {
  Result<std::string> list = api_.Get(PathOfSlices(node_.name));
  if (!list) return list.error();
  Result<std::vector<ApiRequest>> changes = ChangesOf(*list, wanted_, node_);
  if (changes && !changes->empty()) {
    // A node that is registered anew has another uid. What another owner has is removed at once.
    if (Result<> found = FindNode(); !found) return found;
    changes = ChangesOf(*list, wanted_, node_);
  }
  if (!changes) return changes.error();
  if (changes->empty()) return Ok();
  wanted_.kept.clear();
  for (const ApiRequest& change : *changes) {
    if (Result<> done = Send(change); !done) return done;
  }
  Say(fmt::format("published {} ResourceSlices", wanted_.devices.size()));
  if (wanted_.kept != wanted_.devices) {
    Say("the API server has not kept all of them: for shares by capacity, the feature DRAConsumableCapacity "
        "is missing "
        "(Kubernetes 1.36, or its feature gate in 1.34)");
  }
  return Ok();
}

Result<> SlicePublisher::FindNode() {
  const std::string path = "/api/v1/nodes/" + node_.name;
  Result<std::string> text = api_.Get(path);
  if (!text) return text.error();
  node_.uid = TextIn(MemberOrNothing(json::parse(*text, nullptr, false), "metadata"), "uid");
  if (node_.uid.empty()) return Error::Make("the API server's answer to %s is no node", path.c_str());
  return Ok();
}

Result<> SlicePublisher::Send(const ApiRequest& request) {
  Result<ApiAnswer> answer =
      api_.Ask(request.method, request.path, request.body.is_null() ? "" : request.body.dump());
  if (!answer) return answer.error();
  constexpr long kOk = 200;
  constexpr long kCreated = 201;
  constexpr long kNotFound = 404;
  const bool is_gone = request.method == "DELETE" && answer->status == kNotFound;
  if (answer->status != kOk && answer->status != kCreated && !is_gone)
    return api_.Refusal(*answer, request.method, request.path);
  if (request.body.is_null()) return Ok();
  const json kept = json::parse(answer->body, nullptr, false);
  wanted_.kept.push_back(MemberOrNothing(MemberOrNothing(kept, "spec"), "devices"));
  return Ok();
}

}  // namespace xsched::kubernetes
