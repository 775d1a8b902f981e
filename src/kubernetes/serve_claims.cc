#include "kubernetes/serve_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cli/exit_codes.h"
#include "kubernetes/dra_plugin.h"
#include "kubernetes/json_members.h"
#include "kubernetes/prepared_claims.h"
#include "kubernetes/say.h"
#include "kubernetes/slice_publisher.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;

// A kubelet that starts removes the slices some time around its registration of the driver. So they are
// looked after more often then.
constexpr Duration kRestartOfKubelet = std::chrono::minutes(1);

// When the slices are to be looked after.
class PublishTimes {
 public:
  PublishTimes(Duration period, Duration look_period) : period_(period), look_period_(look_period) {}

  void KubeletHasRegistered(TimePoint now) {
    next_ = now;
    often_until_ = now + kRestartOfKubelet;
  }
  void DevicesHaveChanged() { next_ = {}; }
  bool IsDue(TimePoint now) const { return now >= next_; }
  void HasPublished(bool is_published, TimePoint now) {
    const bool is_soon = !is_published || now < often_until_;
    next_ = now + (is_soon ? std::min(look_period_, period_) : period_);
  }

 private:
  const Duration period_;
  const Duration look_period_;
  TimePoint next_{};
  TimePoint often_until_{};
};

void SayWhatIsNotOffered(const std::vector<Gpu>& gpus) {
  for (const Gpu& gpu : gpus) {
    const std::string problem = ProblemOfDraName(gpus, gpu);
    if (!problem.empty()) Say("not offered: " + problem);
  }
}

// False also if the server knows nothing of claims at all: then it answers 404 to this, too.
bool SaysThatItHasGone(const ApiAnswer& answer) {
  constexpr long kNotFound = 404;
  const json status = json::parse(answer.body, nullptr, false);
  return answer.status == kNotFound && TextIn(status, "reason") == "NotFound" &&
         TextIn(MemberOrNothing(status, "details"), "kind") == "resourceclaims";
}

// Claims that have gone while no agent was there to be asked. One of which the API server says nothing stays.
void RemoveThoseOfNoClaim(PreparedClaims& claims, const ApiServer& api) {
  for (const std::string& uid : claims.uids()) {
    const std::optional<PreparedClaim> claim = claims.Find(uid);
    const size_t end = claim->name.find('/');
    const std::string path = PathOfClaim(claim->name.substr(0, end), claim->name.substr(end + 1));
    Result<ApiAnswer> answer = api.Ask("GET", path);
    if (!answer) return;  // nor will it answer for the others
    constexpr long kOk = 200;
    Result<Claim> there = ReadClaim(answer->body);
    const bool is_another = answer->status == kOk && there && there->uid != uid;
    if (!SaysThatItHasGone(*answer) && !is_another) continue;
    Result<> done = claims.Remove(uid);
    Say(fmt::format("claim {} has gone{}", claim->name,
                    done ? "" : std::string(", but: ") + done.error().text()));
  }
}

}  // namespace

void ServeClaims(const ClaimOptions& options) {
  const EndSignals signals;
  if (options.api_server.empty())
    throw cli::CommandError(cli::kExitUsage, "this is no pod of a cluster: --api-server is missing");
  const ApiServer api{options.api_server, options.account};
  GpuList gpus = GpusOf(options);
  NodeState node;
  PreparedClaims claims(PluginRegistry::FolderOf(options.kubelet_home) + "/checkpoint.json",
                        options.cdi_folder);
  DraPlugin plugin(node, claims, api, options.division);
  PluginRegistry registry(options.kubelet_home, plugin);
  SlicePublisher publisher(api, options.node);
  PublishTimes times(options.publish_period, options.look_period);
  RemoveThoseOfNoClaim(claims, api);
  int registrations = 0;
  for (bool is_first = true; !signals.HaveCome(); is_first = false) {
    if (gpus.Update() || is_first) {
      SayWhatThereIs(gpus.all());
      SayWhatIsNotOffered(gpus.all());
      cli::CdiSpecification installed = SpecificationFor(kClaimKind, options);
      claims.WriteSpecifications(installed, gpus.all());
      node.Set({gpus.all(), std::move(installed)});
      publisher.Want(PublishedDevices(DraDevicesOf(gpus.all(), options.division), options.division));
      times.DevicesHaveChanged();
    }
    registry.Attend();
    const TimePoint now = MonotonicClock::now();
    if (const int count = registry.registrations(); count != std::exchange(registrations, count))
      times.KubeletHasRegistered(now);
    if (times.IsDue(now)) times.HasPublished(publisher.Publish(), now);
    WaitUntil(MonotonicClock::now() + options.look_period, -1, signals);
  }
}

}  // namespace xsched::kubernetes
