// What the API server says of a ResourceClaim, and what its containers get. Pure: a text in, a claim out.
//
// The scheduler has chosen the devices. A container uses one request of the claim, or all of them; each
// request has the same percent of each of its GPUs. Administrators (in a DeviceClass) and users (in the
// claim) may say more by parameters:
//
//   apiVersion: gpu.xsched.org/v1
//   kind: ShareParameters
//   class: batch       # or priority: -10
//   share: 20          # percent of each GPU for each container; at most what is allocated
//
// A priority is what the programs ask for. It gives no right: that is the PriorityClass of the pod (pods.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kubernetes/dra_devices.h"

namespace xsched::kubernetes {

inline constexpr const char* kParametersVersion = "gpu.xsched.org/v1";
inline constexpr const char* kParametersKind = "ShareParameters";

struct ShareParameters {
  std::optional<int> priority;
  std::optional<int> share;
};

// One device of ours that is allocated.
struct AllocatedDevice {
  std::string request;  // "request", or "request/subrequest"
  std::string pool;
  std::string device;
  std::string share_id;        // of one of several allocations of the device; empty: it has one
  std::optional<int> percent;  // that is allocated; nullopt: the whole device
  ShareParameters parameters;
};

struct Claim {
  std::string uid;
  bool is_allocated = false;
  std::vector<AllocatedDevice> devices;
};

// At the API server.
std::string PathOfClaim(const std::string& name_space, const std::string& name);
// What has been asked for without an allocation is no error: `is_allocated` is false.
Result<Claim> ReadClaim(std::string_view text);

// The request without its subrequest, as containers name it.
std::string BaseRequest(const std::string& request);

// What the containers of one request get beside the CDI devices of their GPUs.
struct RequestGrant {
  std::string request;  // BaseRequest
  int percent = 0;      // of each of its GPUs
  std::optional<int> priority;
  std::vector<std::string> files;  // of GPUs that no vendor's CDI device gives

  bool operator==(const RequestGrant&) const = default;
};

// The files of a GPU that a grant has: those of one that no vendor's CDI device gives. Each once.
void AddFilesOf(const cli::KernelDevice& gpu, std::vector<std::string>& files);

// A device in the answer to the kubelet.
struct PreparedDevice {
  std::string request;  // BaseRequest
  std::string pool;
  std::string device;
  std::string share_id;
  std::vector<std::string> cdi;

  bool operator==(const PreparedDevice&) const = default;
};

struct PreparedClaim {
  std::string name;  // "namespace/name"
  std::vector<PreparedDevice> devices;
  std::vector<RequestGrant> requests;

  bool operator==(const PreparedClaim&) const = default;
};

// The kind of CDI devices of claims, and the name of that of a request.
inline constexpr const char* kClaimKind = "claim";
std::string ClaimDeviceName(const std::string& uid, const std::string& request);

// The error is for the events of the pod.
Result<PreparedClaim> PrepareClaim(const Claim& claim, const std::string& name, const std::vector<Gpu>& gpus,
                                   const Division& division);

}  // namespace xsched::kubernetes
