#include "kubernetes/testing/fake_api_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "kubernetes/testing/published_slice.h"

namespace xsched::kubernetes::testing {
namespace {

using nlohmann::json;

constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr int kCreated = 201;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;
constexpr int kConflict = 409;
constexpr int kInvalid = 422;
constexpr int kUnavailable = 503;

std::string PathOf(const std::string& name_space, const std::string& name) {
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", name_space, name);
}

json ListOf(const std::map<std::string, json>& objects) {
  json items = json::array();
  for (const auto& [key, object] : objects) items.push_back(object);
  return {{"kind", "List"}, {"items", items}};
}

// Until there is `end`, or `size` bytes. False: the other side has gone.
template <typename IsWhole>
bool ReadUntil(int connection, std::string& text, IsWhole&& is_whole) {
  char part[4096];
  while (!is_whole()) {
    const ssize_t size = read(connection, part, sizeof part);
    if (size <= 0) return false;
    text.append(part, static_cast<size_t>(size));
  }
  return true;
}

}  // namespace

FakeApiServer::FakeApiServer(const std::string& account) {
  std::filesystem::create_directories(account);
  std::ofstream(account + "/token") << token_;
  listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(listener_.get(), 64) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("the fake API server cannot listen");
  url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
  server_ = std::thread([this] { Serve(); });
}

FakeApiServer::~FakeApiServer() {
  ReleaseAnswers();
  shutdown(listener_.get(), SHUT_RDWR);
  server_.join();
}

void FakeApiServer::SetConsumableCapacity(bool is_there) {
  const std::scoped_lock lock(mutex_);
  has_consumable_capacity_ = is_there;
}

void FakeApiServer::SetDown(bool is_down) {
  const std::scoped_lock lock(mutex_);
  is_down_ = is_down;
}

void FakeApiServer::SetClaimsAreServed(bool are_served) {
  const std::scoped_lock lock(mutex_);
  serves_claims_ = are_served;
}

void FakeApiServer::SetNodeUid(const std::string& uid) {
  const std::scoped_lock lock(mutex_);
  node_uid_ = uid;
}

void FakeApiServer::PutClaim(const std::string& name_space, const std::string& name, json claim) {
  const std::scoped_lock lock(mutex_);
  claim["metadata"]["namespace"] = name_space;
  claim["metadata"]["name"] = name;
  claims_[PathOf(name_space, name)] = std::move(claim);
}

void FakeApiServer::RemoveClaim(const std::string& name_space, const std::string& name) {
  const std::scoped_lock lock(mutex_);
  claims_.erase(PathOf(name_space, name));
}

void FakeApiServer::PutPod(json pod) {
  const std::scoped_lock lock(mutex_);
  const std::string uid = pod.at("metadata").at("uid");
  pods_[uid] = std::move(pod);
}

void FakeApiServer::RemovePods() {
  const std::scoped_lock lock(mutex_);
  pods_.clear();
}

void FakeApiServer::HoldAnswers(const std::string& begin) {
  const std::scoped_lock lock(mutex_);
  held_ = begin;
}

void FakeApiServer::ReleaseAnswers() {
  const std::scoped_lock lock(mutex_);
  held_.reset();
  changed_.notify_all();
}

void FakeApiServer::RemoveSlices() {
  const std::scoped_lock lock(mutex_);
  slices_.clear();
}

int FakeApiServer::Count(const std::string& begin) const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(
      std::ranges::count_if(requests_, [&](const std::string& line) { return line.starts_with(begin); }));
}

std::vector<std::string> FakeApiServer::faults() const {
  const std::scoped_lock lock(mutex_);
  return faults_;
}

void FakeApiServer::Serve() {
  while (true) {
    const UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    ServeOne(connection.get());
  }
}

void FakeApiServer::ServeOne(int connection) {
  std::string text;
  size_t end = 0;
  if (!ReadUntil(connection, text, [&] { return (end = text.find("\r\n\r\n")) != std::string::npos; }))
    return;
  std::istringstream lines(text.substr(0, end));
  Request request;
  lines >> request.method >> request.path;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string value = line.substr(colon + 2);
    if (value.ends_with('\r')) value.pop_back();
    request.headers[name] = value;
  }
  const auto length = request.headers.find("content-length");
  const size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  request.body = text.substr(end + 4);
  if (!ReadUntil(connection, request.body, [&] { return request.body.size() >= size; })) return;
  const Answer answer = AnswerTo(request);
  const std::string body = answer.body.dump();
  const std::string whole = fmt::format(
      "HTTP/1.1 {} Status\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: "
      "close\r\n\r\n{}",
      answer.status, body.size(), body);
  static_cast<void>(!write(connection, whole.data(), whole.size()));
}

FakeApiServer::Answer FakeApiServer::Fault(const Request& request, const std::string& why) {
  faults_.push_back(fmt::format("{} {}: {}: {}", request.method, request.path, why, request.body));
  return {kInvalid, {{"kind", "Status"}, {"code", kInvalid}, {"message", why}}};
}

FakeApiServer::Answer FakeApiServer::AnswerTo(const Request& request) {
  std::unique_lock lock(mutex_);
  const std::string line = request.method + " " + request.path;
  requests_.push_back(line);
  changed_.notify_all();
  changed_.wait(lock, [&] { return !held_ || !line.starts_with(*held_); });
  if (is_down_) return {kUnavailable, {{"kind", "Status"}, {"code", kUnavailable}}};
  auto header = [&](const char* name) {
    const auto found = request.headers.find(name);
    return found == request.headers.end() ? "" : found->second;
  };
  if (header("authorization") != "Bearer " + token_) {
    Fault(request, "the token is missing or wrong");
    return {kUnauthorized, {{"kind", "Status"}, {"code", kUnauthorized}}};
  }
  if (header("accept") != "application/json") return Fault(request, "it does not accept JSON");
  const bool has_body = request.method == "POST" || request.method == "PUT";
  if (has_body ? header("content-type") != "application/json" : !request.body.empty())
    return Fault(request, "its body is not as it should be");
  if (!serves_claims_ && request.path.starts_with("/apis/resource.k8s.io/"))
    return {kNotFound, "404 page not found"};
  if (request.path.starts_with(kSlices)) return AnswerToSlices(request);
  if (request.method != "GET") return Fault(request, "the agent may not do this");
  if (request.path == fmt::format("/api/v1/nodes/{}", kNodeName))
    return {200, {{"kind", "Node"}, {"metadata", {{"name", kNodeName}, {"uid", node_uid_}}}}};
  if (request.path ==
      fmt::format("/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3D{}", kNodeName))
    return {200, ListOf(pods_)};
  if (request.path == "/apis/scheduling.k8s.io/v1/priorityclasses?resourceVersion=0")
    return {200, ListOf({})};
  const auto claim = claims_.find(request.path);
  if (claim != claims_.end()) return {200, claim->second};
  if (request.path.find("/resourceclaims/") == std::string::npos)
    return Fault(request, "there is nothing of the kind");
  return {kNotFound,
          {{"kind", "Status"},
           {"reason", "NotFound"},
           {"details", {{"group", "resource.k8s.io"}, {"kind", "resourceclaims"}}},
           {"code", kNotFound}}};
}

FakeApiServer::Answer FakeApiServer::AnswerToSlices(const Request& request) {
  const std::string rest = request.path.substr(std::string(kSlices).size());
  if (request.method == "GET") {
    if (rest != fmt::format("?fieldSelector=spec.driver%3Dgpu.xsched.org,spec.nodeName%3D{}", kNodeName))
      return Fault(request, "it asks for those of others");
    return {200, {{"kind", "ResourceSliceList"}, {"items", slices_.empty() ? json() : Slices()}}};
  }
  if (request.method == "DELETE") {
    const bool was_there = slices_.erase(rest.empty() ? rest : rest.substr(1)) != 0;
    changed_.notify_all();
    return {was_there ? 200 : kNotFound, {{"kind", "Status"}}};
  }
  json slice = json::parse(request.body, nullptr, false);
  std::string problem = ProblemOfSlice(slice);
  if (problem.empty() && slice["spec"]["nodeName"] != kNodeName) problem = "it is of another node";
  if (!problem.empty()) return Fault(request, problem);
  if (request.method == "POST" && rest.empty()) return Create(std::move(slice));
  if (request.method == "PUT" && rest.starts_with('/')) return Replace(rest.substr(1), std::move(slice));
  return Fault(request, "there is no such request");
}

FakeApiServer::Answer FakeApiServer::Create(json slice) {
  json& metadata = slice["metadata"];
  const std::string name =
      fmt::format("{}{:05x}", metadata.at("generateName").get<std::string>(), version_ * 7919 % 65536);
  metadata["name"] = name;
  metadata["uid"] = fmt::format("uid-{}", version_);
  Keep(slice);
  return {kCreated, slices_[name] = slice};
}

FakeApiServer::Answer FakeApiServer::Replace(const std::string& name, json slice) {
  const auto old = slices_.find(name);
  if (old == slices_.end()) return {kNotFound, {{"kind", "Status"}}};
  for (const char* member : {"name", "uid", "resourceVersion"}) {
    if (slice["metadata"][member] != old->second["metadata"][member])
      return {kConflict, {{"kind", "Status"}}};
  }
  Keep(slice);
  return {200, old->second = slice};
}

void FakeApiServer::Keep(json& slice) {
  slice["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (!has_consumable_capacity_) {
    for (json& device : slice["spec"]["devices"]) {
      device.erase("allowMultipleAllocations");
      for (auto& [name, capacity] : device["capacity"].items()) capacity.erase("requestPolicy");
    }
  }
  changed_.notify_all();
}

json FakeApiServer::Slices() const {
  json slices = json::array();
  for (const auto& [name, slice] : slices_) slices.push_back(slice);
  return slices;
}

}  // namespace xsched::kubernetes::testing
