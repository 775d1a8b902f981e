#include "kubernetes/dra_plugin.h"

#include <fmt/format.h>

#include <algorithm>

#include "kubernetes/say.h"
#include "kubernetes/text.h"

namespace xsched::kubernetes {
namespace {

// They become parts of paths: of the API server's, and of files.
bool IsName(const std::string& text) {
  constexpr size_t kLongest = 253;
  return !text.empty() && text.size() <= kLongest && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

void AddDevices(const PreparedClaim& claim, dra::NodePrepareResourceResponse& answer) {
  for (const PreparedDevice& device : claim.devices) {
    dra::Device& answered = *answer.add_devices();
    answered.add_request_names(device.request);
    answered.set_pool_name(device.pool);
    answered.set_device_name(device.device);
    if (!device.share_id.empty()) answered.set_share_id(device.share_id);
    for (const std::string& name : device.cdi) answered.add_cdi_device_ids(name);
  }
}

std::string TextOf(const PreparedClaim& claim) {
  std::string text;
  for (const RequestGrant& request : claim.requests)
    text += fmt::format("{}{} {} %", text.empty() ? "" : ", ", request.request, request.percent);
  return text;
}

}  // namespace

grpc::Status DraPlugin::NodePrepareResources(grpc::ServerContext*,
                                             const dra::NodePrepareResourcesRequest* request,
                                             dra::NodePrepareResourcesResponse* answer) {
  for (const dra::Claim& asked : request->claims()) {
    dra::NodePrepareResourceResponse& response = (*answer->mutable_claims())[asked.uid()];
    Result<PreparedClaim> claim = Prepare(asked);
    if (claim) {
      AddDevices(*claim, response);
    } else {
      response.set_error(OneLine(claim.error().text()));
      Say(fmt::format("claim {}/{} is not prepared: {}", asked.namespace_(), asked.name(),
                      claim.error().text()));
    }
  }
  return grpc::Status::OK;
}

grpc::Status DraPlugin::NodeUnprepareResources(grpc::ServerContext*,
                                               const dra::NodeUnprepareResourcesRequest* request,
                                               dra::NodeUnprepareResourcesResponse* answer) {
  for (const dra::Claim& asked : request->claims()) {
    dra::NodeUnprepareResourceResponse& response = (*answer->mutable_claims())[asked.uid()];
    const bool is_prepared = claims_.Find(asked.uid()).has_value();
    Result<> done = claims_.Remove(asked.uid());
    if (!done) response.set_error(OneLine(done.error().text()));
    if (!done || is_prepared) {
      Say(fmt::format("claim {}/{} is {}", asked.namespace_(), asked.name(),
                      done ? "given back" : std::string("not given back: ") + done.error().text()));
    }
  }
  return grpc::Status::OK;
}

Result<PreparedClaim> DraPlugin::Prepare(const dra::Claim& asked) {
  if (!IsName(asked.namespace_()) || !IsName(asked.name()) || !IsName(asked.uid()))
    return Error::Make("the kubelet names no claim");
  if (std::optional<PreparedClaim> before = claims_.Find(asked.uid())) return *std::move(before);
  Result<std::string> text = api_.Get(PathOfClaim(asked.namespace_(), asked.name()));
  if (!text) return text.error();
  Result<Claim> claim = ReadClaim(*text);
  if (!claim) return claim.error();
  if (claim->uid != asked.uid())
    return Error::Make("there is another claim of this name (uid %s)", claim->uid.c_str());
  if (!claim->is_allocated) return Error::Make("nothing is allocated to it");
  if (claim->devices.empty()) return Error::Make("it has no device of %s", kDriver);
  Result<PreparedClaim> prepared = PrepareClaim(
      *claim, fmt::format("{}/{}", asked.namespace_(), asked.name()), node_.now()->gpus, division_);
  if (!prepared) return prepared;
  if (Result<> added = claims_.Add(asked.uid(), *prepared); !added) return added.error();
  Say(fmt::format("claim {}: {}", prepared->name, TextOf(*prepared)));
  return prepared;
}

}  // namespace xsched::kubernetes
