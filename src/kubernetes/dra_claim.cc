#include "kubernetes/dra_claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "cli/cdi/specification.h"
#include "kubernetes/failed.h"
#include "kubernetes/json_members.h"
#include "kubernetes/text.h"
#include "xsched/types.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

constexpr int kWhole = 100;

Result<int> NumberIn(const json& parameters, const char* name, int least, int most) {
  const json& value = parameters.at(name);
  if (value.is_number_integer() && value >= least && value <= most) return value.get<int>();
  return Failed(fmt::format("{} \"{}\" is no number from {} to {}", name,
                            Beginning(value.dump(-1, ' ', true, json::error_handler_t::replace)), least,
                            most));
}

Result<int> PriorityOfClass(const json& value) {
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  for (const cli::CdiDevice& known : cli::DefaultClasses()) {
    if (known.name == name) return static_cast<int>(*known.launch.priority);
  }
  return Failed(fmt::format("class \"{}\" is none of urgent, normal and batch", Beginning(name)));
}

// What is said replaces what was said before.
Result<> Apply(const json& parameters, ShareParameters& to) {
  if (TextIn(parameters, "apiVersion") != kParametersVersion || TextIn(parameters, "kind") != kParametersKind)
    return Failed(fmt::format("the parameters are no {} of {}", kParametersKind, kParametersVersion));
  if (parameters.contains("class") && parameters.contains("priority"))
    return Failed("class and priority are given, which are the same thing");
  for (const auto& [name, value] : parameters.items()) {
    if (name == "apiVersion" || name == "kind") continue;
    if (name != "class" && name != "priority" && name != "share")
      return Failed(fmt::format("there is no parameter {}", Beginning(name)));
    Result<int> number = name == "class"      ? PriorityOfClass(value)
                         : name == "priority" ? NumberIn(parameters, "priority", PRIORITY_MIN, PRIORITY_MAX)
                                              : NumberIn(parameters, "share", 1, kWhole);
    if (!number) return number.error();
    (name == "share" ? to.share : to.priority) = *number;
  }
  return Ok();
}

bool AppliesTo(const json& config, const std::string& request) {
  const json& requests = MemberOrNothing(config, "requests");
  return requests.empty() || std::any_of(requests.begin(), requests.end(), [&](const json& named) {
           return named == request || named == BaseRequest(request);
         });
}

// Those of the class first: what the claim says replaces them.
Result<ShareParameters> ParametersOf(const json& configs, const std::string& request) {
  ShareParameters parameters;
  for (const char* source : {"FromClass", "FromClaim"}) {
    for (const json& config : configs) {
      const json& opaque = MemberOrNothing(config, "opaque");
      if (TextIn(config, "source") != source || TextIn(opaque, "driver") != kDriver ||
          !AppliesTo(config, request))
        continue;
      if (Result<> done = Apply(MemberOrNothing(opaque, "parameters"), parameters); !done)
        return done.error();
    }
  }
  return parameters;
}

// What is consumed of the capacity of a device that several claims may have. The name may have the driver's
// domain.
Result<std::optional<int>> PercentIn(const json& result) {
  const json* consumed = Member(result, "consumedCapacity");
  if (consumed == nullptr) return std::optional<int>();
  std::string text = TextIn(*consumed, kShareCapacity);
  if (text.empty()) text = TextIn(*consumed, fmt::format("{}/{}", kDriver, kShareCapacity).c_str());
  int percent = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || at != end || percent < 1 || percent > kWhole)
    return Failed(fmt::format("a share of \"{}\" is no number from 1 to {}", Beginning(text), kWhole));
  return std::optional(percent);
}

Result<AllocatedDevice> ReadDevice(const json& result, const json& configs) {
  AllocatedDevice device{.request = TextIn(result, "request"),
                         .pool = TextIn(result, "pool"),
                         .device = TextIn(result, "device"),
                         .share_id = TextIn(result, "shareID"),
                         .percent = {},
                         .parameters = {}};
  if (MemberOrNothing(result, "adminAccess") == true)
    return Failed(fmt::format("request {}: access for administrators is not offered", device.request));
  Result<std::optional<int>> percent = PercentIn(result);
  if (!percent) return percent.error();
  device.percent = *percent;
  Result<ShareParameters> parameters = ParametersOf(configs, device.request);
  if (!parameters) return parameters.error();
  device.parameters = *parameters;
  return device;
}

// What one request has of each GPU, in percent or in slots.
using Parts = std::map<std::string, int>;

std::string TextOf(const Parts& percents) {
  constexpr size_t kMost = 4;
  std::string text;
  size_t count = 0;
  for (const auto& [gpu, percent] : percents) {
    if (++count > kMost) return text + ", …";
    text += fmt::format("{}{} % of {}", text.empty() ? "" : ", ", percent, gpu);
  }
  return text;
}

// The percent that a request has of each of its GPUs.
Result<int> PercentOf(const std::string& request, const Parts& percents, const ShareParameters& parameters) {
  const int percent = percents.begin()->second;
  const bool is_even =
      std::ranges::all_of(percents, [&](const auto& part) { return part.second == percent; });
  if (!is_even) {
    return Failed(fmt::format(
        "request {} has {}. It must have the same of each: a constraint with matchAttribute {}/{} "
        "keeps it on one GPU",
        request, TextOf(percents), kDriver, kGpuAttribute));
  }
  if (percent > kWhole) return Failed(fmt::format("request {} has {}", request, TextOf(percents)));
  if (!parameters.share) return percent;
  if (*parameters.share > percent)
    return Failed(fmt::format("request {}: a share of {} % is more than the {} % that are allocated", request,
                              *parameters.share, percent));
  return *parameters.share;
}

// A claim, as it is prepared.
class Preparation {
 public:
  Preparation(const Claim& claim, const std::vector<Gpu>& gpus, const Division& division)
      : claim_(claim), gpus_(gpus), division_(division), known_(DraDevicesOf(gpus, division)) {}

  Result<PreparedClaim> Prepare(const std::string& name) {
    prepared_.name = name;
    for (const AllocatedDevice& device : claim_.devices) {
      if (Result<> added = Add(device); !added) return added.error();
    }
    for (RequestGrant& grant : prepared_.requests) {
      Result<int> percent =
          PercentOf(grant.request, PercentsOf(grant.request), parameters_.at(grant.request));
      if (!percent) return percent.error();
      grant.percent = *percent;
    }
    return prepared_;
  }

 private:
  Result<> Add(const AllocatedDevice& device) {
    const auto known = std::ranges::find(known_, device.device, &DraDevice::name);
    if (known == known_.end())
      return Failed(fmt::format(
          "this node offers no device {}: its GPU does not work, or it is offered in another form "
          "since the claim was allocated",
          device.device));
    const Gpu& gpu = *std::ranges::find(gpus_, known->gpu, [](const Gpu& other) { return other.device.id; });
    const std::string request = BaseRequest(device.request);
    const bool is_first = !parameters_.contains(request);
    // Of several subrequests of a request, one is allocated: so all its devices have the same parameters.
    parameters_[request] = device.parameters;
    int& part = parts_[request][gpu.device.id];
    PreparedDevice& answered = prepared_.devices.emplace_back(
        PreparedDevice{request, device.pool, device.device, device.share_id, {}});
    if (is_first) {
      prepared_.requests.push_back({request, 0, device.parameters.priority, {}});
      answered.cdi.push_back(
          fmt::format("xsched.org/{}={}", kClaimKind, ClaimDeviceName(claim_.uid, request)));
    }
    // A container of the request gets the CDI devices of all its devices. Each is named once.
    if (part == 0) AddGpu(gpu.device, answered, GrantOf(request));
    part += division_.by_capacity ? device.percent.value_or(kWhole) : 1;
    return Ok();
  }

  static void AddGpu(const cli::KernelDevice& gpu, PreparedDevice& answered, RequestGrant& grant) {
    if (!gpu.cdi.empty()) answered.cdi.push_back(gpu.cdi);
    AddFilesOf(gpu, grant.files);
  }

  RequestGrant& GrantOf(const std::string& request) {
    return *std::ranges::find(prepared_.requests, request, &RequestGrant::request);
  }

  Parts PercentsOf(const std::string& request) const {
    Parts percents = parts_.at(request);
    for (auto& [gpu, part] : percents) part = division_.by_capacity ? part : part * kWhole / division_.slots;
    return percents;
  }

  const Claim& claim_;
  const std::vector<Gpu>& gpus_;
  const Division& division_;
  const std::vector<DraDevice> known_;
  std::map<std::string, Parts> parts_;                 // by request
  std::map<std::string, ShareParameters> parameters_;  // likewise
  PreparedClaim prepared_;
};

}  // namespace

std::string PathOfClaim(const std::string& name_space, const std::string& name) {
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", name_space, name);
}

Result<Claim> ReadClaim(std::string_view text) {
  const json read = json::parse(text, nullptr, false);
  Claim claim;
  claim.uid = TextIn(MemberOrNothing(read, "metadata"), "uid");
  if (claim.uid.empty()) return Failed("the API server's answer is no ResourceClaim");
  const json* allocation = Member(MemberOrNothing(read, "status"), "allocation");
  claim.is_allocated = allocation != nullptr && allocation->is_object();
  if (!claim.is_allocated) return claim;
  const json& devices = MemberOrNothing(*allocation, "devices");
  for (const json& result : MemberOrNothing(devices, "results")) {
    if (TextIn(result, "driver") != kDriver) continue;
    Result<AllocatedDevice> device = ReadDevice(result, MemberOrNothing(devices, "config"));
    if (!device) return device.error();
    claim.devices.push_back(std::move(*device));
  }
  return claim;
}

std::string BaseRequest(const std::string& request) { return request.substr(0, request.find('/')); }

void AddFilesOf(const cli::KernelDevice& gpu, std::vector<std::string>& files) {
  if (!gpu.cdi.empty()) return;
  for (const std::string& file : gpu.files) {
    if (std::ranges::count(files, file) == 0) files.push_back(file);
  }
}

std::string ClaimDeviceName(const std::string& uid, const std::string& request) {
  return fmt::format("{}-{}", uid, request);
}

Result<PreparedClaim> PrepareClaim(const Claim& claim, const std::string& name, const std::vector<Gpu>& gpus,
                                   const Division& division) {
  return Preparation(claim, gpus, division).Prepare(name);
}

}  // namespace xsched::kubernetes
