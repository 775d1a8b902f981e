#include "kubernetes/prepared_claims.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/mutex.h"
#include "cli/cdi/installed.h"
#include "cli/exit_codes.h"
#include "cli/json_text.h"
#include "cli/new_file.h"
#include "kubernetes/failed.h"
#include "kubernetes/pods.h"

namespace xsched::kubernetes {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Claims = std::map<std::string, PreparedClaim>;  // by uid

constexpr int kVersion = 1;
constexpr std::string_view kFileBegin = "xsched-claim-";
constexpr std::string_view kFileEnd = ".json";

json Written(const PreparedClaim& claim) {
  json devices = json::array();
  for (const PreparedDevice& device : claim.devices) {
    devices.push_back({{"request", device.request},
                       {"pool", device.pool},
                       {"device", device.device},
                       {"shareID", device.share_id},
                       {"cdi", device.cdi}});
  }
  json requests = json::array();
  for (const RequestGrant& request : claim.requests) {
    json written = {{"request", request.request}, {"percent", request.percent}, {"files", request.files}};
    if (request.priority) written["priority"] = *request.priority;
    requests.push_back(std::move(written));
  }
  return {{"name", claim.name}, {"devices", devices}, {"requests", requests}};
}

PreparedClaim Read(const json& written) {
  PreparedClaim claim{.name = written.at("name"), .devices = {}, .requests = {}};
  for (const json& device : written.at("devices"))
    claim.devices.push_back({device.at("request"), device.at("pool"), device.at("device"),
                             device.at("shareID"), device.at("cdi")});
  for (const json& request : written.at("requests")) {
    RequestGrant& grant = claim.requests.emplace_back(
        RequestGrant{request.at("request"), request.at("percent"), {}, request.at("files")});
    if (request.contains("priority")) grant.priority = request.at("priority").get<int>();
  }
  return claim;
}

Claims ReadCheckpoint(const std::string& path) {
  Claims claims;
  if (!fs::exists(path)) return claims;
  try {
    const json checkpoint = json::parse(std::ifstream(path));
    if (checkpoint.at("version") != kVersion) throw std::runtime_error("it is of another version");
    for (const auto& [uid, claim] : checkpoint.at("claims").items()) claims[uid] = Read(claim);
  } catch (const std::exception& error) {
    // To begin with none would forget what containers have. So this is for an administrator.
    throw cli::CommandError(
        cli::kExitFailed,
        fmt::format("cannot read {}: {}. Drain the node, and remove the file", path, error.what()));
  }
  return claims;
}

// Each change is a new file, so that there is always a whole one.
void WriteCheckpoint(const std::string& path, const Claims& claims) {
  json written = json::object();
  for (const auto& [uid, claim] : claims) written[uid] = Written(claim);
  cli::NewFile file(path, cli::JsonText(json{{"version", kVersion}, {"claims", written}}) + "\n");
  file.PutInPlace();
}

std::string FileOf(const std::string& uid) { return fmt::format("{}{}{}", kFileBegin, uid, kFileEnd); }

// Of the GPUs of a request that no vendor's CDI device gives. nullopt: one of its GPUs is not there, whose
// files may be those of another one by now.
std::optional<std::vector<std::string>> FilesOf(const PreparedClaim& claim, const std::string& request,
                                                const std::vector<Gpu>& gpus) {
  std::vector<std::string> files;
  for (const PreparedDevice& device : claim.devices) {
    if (device.request != request) continue;
    const Gpu* gpu = GpuOfDraDevice(gpus, device.device);
    if (gpu == nullptr || !gpu->works) return std::nullopt;
    AddFilesOf(gpu->device, files);
  }
  return files;
}

void WriteSpecificationOf(const std::string& uid, const PreparedClaim& claim,
                          cli::CdiSpecification specification, const std::vector<Gpu>& gpus,
                          const std::string& folder) {
  for (const RequestGrant& request : claim.requests) {
    const bool has_files = !request.files.empty();
    std::optional<std::vector<std::string>> files = FilesOf(claim, request.request, gpus);
    if (has_files && (!files || files->empty())) continue;
    const std::vector<cli::CdiDevice> shares = cli::Shares();
    cli::CdiDevice device = shares.at(static_cast<size_t>(request.percent) - 1);
    device.name = ClaimDeviceName(uid, request.request);
    // A higher one needs a right, which `xsched-kubernetes pods` knows. As a claim that is not allowed, it
    // would lower what other pods of the same tenant count.
    if (request.priority && *request.priority <= kPriorityWithoutRight)
      device.launch.priority = request.priority;
    if (has_files) device.files = std::move(*files);
    specification.devices.push_back(std::move(device));
  }
  const std::string path = folder + "/" + FileOf(uid);
  // One without devices is none to engines.
  std::error_code ignored;
  specification.devices.empty() ? static_cast<void>(fs::remove(path, ignored))
                                : cli::WriteSpecification(specification, path);
}

void RemoveOthers(const std::string& folder, const Claims& claims) {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kFileBegin)) continue;
    const bool is_unfinished = name.find(fmt::format("{}{}", kFileEnd, cli::kUnfinished)) != name.npos;
    if (is_unfinished) others.push_back(entry.path());
    if (!name.ends_with(kFileEnd)) continue;
    const std::string uid = name.substr(kFileBegin.size(), name.size() - kFileBegin.size() - kFileEnd.size());
    if (!claims.contains(uid)) others.push_back(entry.path());
  }
  for (const fs::path& other : others) fs::remove(other, ignored);
}

// The functions of commands report errors by exceptions. The kubelet gets errors as values.
template <typename Do>
Result<> Try(Do&& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return Failed(error.what());
  }
  return Ok();
}

}  // namespace

struct PreparedClaims::Guarded {
  const std::string checkpoint;
  const std::string cdi_folder;
  Mutex<LockRank::kPreparedClaims> mutex;
  Claims claims GUARDED_BY(mutex);
  cli::CdiSpecification installed GUARDED_BY(mutex);
  std::vector<Gpu> gpus GUARDED_BY(mutex);
};

PreparedClaims::PreparedClaims(const std::string& checkpoint, std::string cdi_folder)
    : guarded_(new Guarded{checkpoint, std::move(cdi_folder), {}, ReadCheckpoint(checkpoint), {}}) {}
PreparedClaims::~PreparedClaims() = default;

void PreparedClaims::WriteSpecifications(cli::CdiSpecification installed, std::vector<Gpu> gpus) {
  const MutexLock lock(guarded_->mutex);
  guarded_->installed = std::move(installed);
  guarded_->gpus = std::move(gpus);
  RemoveOthers(guarded_->cdi_folder, guarded_->claims);
  cli::RemoveUnfinished(guarded_->checkpoint);
  for (const auto& [uid, claim] : guarded_->claims)
    WriteSpecificationOf(uid, claim, guarded_->installed, guarded_->gpus, guarded_->cdi_folder);
}

std::optional<PreparedClaim> PreparedClaims::Find(const std::string& uid) const {
  const MutexLock lock(guarded_->mutex);
  const auto found = guarded_->claims.find(uid);
  return found == guarded_->claims.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> PreparedClaims::uids() const {
  const MutexLock lock(guarded_->mutex);
  std::vector<std::string> uids;
  for (const auto& [uid, claim] : guarded_->claims) uids.push_back(uid);
  return uids;
}

Result<> PreparedClaims::Add(const std::string& uid, const PreparedClaim& claim) {
  const MutexLock lock(guarded_->mutex);
  // Copies: the analysis of locks does not follow what is guarded into the functions below.
  const Claims before = guarded_->claims;
  const cli::CdiSpecification installed = guarded_->installed;
  const std::vector<Gpu> gpus = guarded_->gpus;
  Claims claims = before;
  claims[uid] = claim;
  Result<> done = Try([&] {
    WriteCheckpoint(guarded_->checkpoint, claims);
    WriteSpecificationOf(uid, claim, installed, gpus, guarded_->cdi_folder);
  });
  if (done) {
    guarded_->claims = std::move(claims);
  } else {
    // The file may have it already. If this fails as well, the next change or the next agent repairs it.
    static_cast<void>(Try([&] { WriteCheckpoint(guarded_->checkpoint, before); }));
  }
  return done;
}

Result<> PreparedClaims::Remove(const std::string& uid) {
  const MutexLock lock(guarded_->mutex);
  if (!guarded_->claims.contains(uid)) return Ok();
  Claims claims = guarded_->claims;
  claims.erase(uid);
  Result<> done = Try([&] {
    fs::remove(fs::path(guarded_->cdi_folder) / FileOf(uid));
    WriteCheckpoint(guarded_->checkpoint, claims);
  });
  if (done) guarded_->claims = std::move(claims);
  return done;
}

}  // namespace xsched::kubernetes
