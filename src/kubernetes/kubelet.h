// The kubelet's folder for device plugins: serves the plugin at a socket there, and registers it.
//
// A kubelet that starts removes all sockets in its folder and then makes its own, kubelet.sock. So the plugin
// is served and registered anew whenever that comes. What fails is tried again, less and less often.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "kubernetes/device_plugin.h"

namespace xsched::kubernetes {

inline constexpr const char* kKubeletFolder = "/var/lib/kubelet/device-plugins";

class Kubelet {
 public:
  // `time_to_follow`: a kubelet that has registered the plugin follows its list by then. Throws
  // std::runtime_error: the folder is not there, or another agent serves in it.
  Kubelet(std::string folder, DevicePlugin& plugin, Duration time_to_follow);
  ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // Readable when something has changed in the folder.
  int fd() const { return changes_.get(); }
  // Looks what has changed, and does what is due. Returns when to be called again at the latest. Throws
  // std::runtime_error: the folder has been removed.
  TimePoint Attend(TimePoint now);

 private:
  void ReadChanges();
  void Serve();
  void StopServing();
  void Register(TimePoint now);
  void TryLater(TimePoint now, const std::string& why);

  std::string folder_;
  DevicePlugin& plugin_;
  const Duration time_to_follow_;
  UniqueFd changes_;
  std::unique_ptr<grpc::Server> server_;
  bool is_registered_ = false;
  TimePoint next_try_{};
  TimePoint registered_at_{};
  Duration delay_{};
  std::string said_;  // why it failed last
};

}  // namespace xsched::kubernetes
