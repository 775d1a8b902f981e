#include "kubernetes/kubelet.h"

#include <errno.h>
#include <fmt/format.h>
#include <grpcpp/server_builder.h>
#include <string.h>
#include <sys/inotify.h>

#include <algorithm>
#include <stdexcept>

#include "kubernetes/grpc_channel.h"
#include "kubernetes/grpc_server.h"
#include "kubernetes/say.h"
#include "kubernetes/unix_socket.h"

namespace xsched::kubernetes {
namespace {

constexpr const char* kVersion = "v1beta1";
constexpr const char* kSocket = "xsched-share.sock";
constexpr const char* kKubeletSocket = "kubelet.sock";
constexpr Duration kFirstDelay = std::chrono::milliseconds(250);
constexpr Duration kLongestDelay = std::chrono::seconds(30);
constexpr Duration kPatience = std::chrono::seconds(5);

UniqueFd WatchFolder(const std::string& folder) {
  UniqueFd changes(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  constexpr uint32_t kEvents = IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF | IN_ONLYDIR;
  if (!changes || inotify_add_watch(changes.get(), folder.c_str(), kEvents) < 0)
    throw std::runtime_error(fmt::format("cannot watch {}: {}", folder, strerror(errno)));
  return changes;
}

}  // namespace

Kubelet::Kubelet(std::string folder, DevicePlugin& plugin, Duration time_to_follow)
    : folder_(std::move(folder)),
      plugin_(plugin),
      time_to_follow_(time_to_follow),
      changes_(WatchFolder(folder_)) {
  if (IsServedAt(folder_ + "/" + kSocket))
    throw std::runtime_error(fmt::format("another agent serves at {}/{}", folder_, kSocket));
}

Kubelet::~Kubelet() { StopServing(); }

TimePoint Kubelet::Attend(TimePoint now) {
  ReadChanges();
  if (is_registered_ && !plugin_.node().IsFollowed() && now >= registered_at_ + time_to_follow_) {
    is_registered_ = false;
    TryLater(now, "the kubelet does not follow the list of devices any more");
  }
  if (!is_registered_ && now >= next_try_) Register(now);
  return is_registered_ ? now + time_to_follow_ : next_try_;
}

void Kubelet::ReadChanges() {
  alignas(inotify_event) char events[4096];
  ssize_t size;
  while ((size = read(changes_.get(), events, sizeof events)) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(events + at);
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & (IN_DELETE_SELF | IN_IGNORED)) != 0)
        throw std::runtime_error(folder_ + " has been removed");
      const std::string name = event.len == 0 ? "" : event.name;
      const bool is_new_kubelet = name == kKubeletSocket && (event.mask & IN_DELETE) == 0;
      const bool is_removed = name == kSocket && (event.mask & IN_DELETE) != 0;
      if (!is_new_kubelet && !is_removed && (event.mask & IN_Q_OVERFLOW) == 0) continue;
      is_registered_ = false;
      next_try_ = {};
      delay_ = {};
      said_.clear();
    }
  }
}

void Kubelet::Serve() {
  StopServing();
  plugin_.node().Begin();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(fmt::format("unix:{}/{}", folder_, kSocket), grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin_);
  server_ = builder.BuildAndStart();
  // That the old socket went is no news.
  ReadChanges();
}

void Kubelet::StopServing() {
  if (server_ == nullptr) return;
  plugin_.node().End();
  Stop(server_);
}

void Kubelet::Register(TimePoint now) {
  if (server_ == nullptr || !IsServedAt(folder_ + "/" + kSocket)) Serve();
  if (server_ == nullptr) return TryLater(now, fmt::format("cannot make a socket in {}", folder_));
  v1beta1::RegisterRequest request;
  request.set_version(kVersion);
  request.set_endpoint(kSocket);
  request.set_resource_name(kShareResource);
  *request.mutable_options() = DevicePlugin::Options();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  v1beta1::Empty nothing;
  const auto kubelet = v1beta1::Registration::NewStub(ChannelTo(folder_ + "/" + kKubeletSocket));
  const grpc::Status status = kubelet->Register(&context, request, &nothing);
  if (!status.ok()) {
    return TryLater(now, fmt::format("the kubelet does not register {}: {} (code {})", kShareResource,
                                     status.error_message(), static_cast<int>(status.error_code())));
  }
  Say(fmt::format("registered {} with the kubelet", kShareResource));
  is_registered_ = true;
  registered_at_ = now;
  said_.clear();
}

void Kubelet::TryLater(TimePoint now, const std::string& why) {
  delay_ = std::clamp(2 * delay_, kFirstDelay, kLongestDelay);
  next_try_ = now + delay_;
  if (said_ != why) Say(why);
  said_ = why;
}

}  // namespace xsched::kubernetes
