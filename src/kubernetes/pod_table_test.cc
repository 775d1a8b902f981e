// The table of pods, with a fake API server.
#include "kubernetes/pod_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>

#include "kubernetes/testing/claim_json.h"
#include "kubernetes/testing/fake_api_server.h"
#include "kubernetes/testing/fake_pod_resources.h"
#include "server/testing/server_process.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;
using testing::FakeApiServer;

constexpr const char* kPod = "aaaaaaaa-0000-4000-8000-000000000001";
constexpr const char* kOtherPod = "bbbbbbbb-0000-4000-8000-000000000002";
constexpr const char* kStaticPod = "0123456789abcdef0123456789abcdef";
constexpr const char* kReadsPods = "GET /api/v1/pods";
constexpr const char* kReadsClasses = "GET /apis/scheduling.k8s.io/v1/priorityclasses";
constexpr const char* kReadsItsClaim = "GET /apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/gpu";

class KubernetesPodTable : public ::testing::Test {
 protected:
  ~KubernetesPodTable() override { EXPECT_THAT(api_.faults(), ::testing::IsEmpty()); }

  PodOptions Options() const {
    return {.node = testing::kNodeName,
            .api_server = api_.url(),
            .account = folder_.path() + "/account",
            .pod_resources = PodResources(),
            .reads_claims = true,
            .refresh_period = std::chrono::milliseconds(20)};
  }
  static json PodJson(const std::string& uid, const std::string& priority) {
    return {{"metadata",
             {{"uid", uid},
              {"namespace", "lab"},
              {"name", "pod"},
              {"annotations", {{"xsched.org/priority", priority}}}}}};
  }
  std::string PodResources() const { return folder_.path() + "/pod-resources/kubelet.sock"; }
  // One that lists these pods of the namespace lab.
  std::unique_ptr<testing::FakePodResources> MakeKubelet(std::initializer_list<const char*> names) const {
    auto kubelet = std::make_unique<testing::FakePodResources>(PodResources());
    for (const char* name : names) kubelet->AddPod("lab", name);
    return kubelet;
  }
  // Of the same name as all the others here.
  static json MirrorPod(const std::string& priority) {
    json pod = PodJson("cccccccc-0000-4000-8000-000000000003", priority);
    pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = kStaticPod;
    return pod;
  }
  // One that has the claim "gpu".
  static json PodWithClaim() {
    return {{"metadata", {{"uid", kPod}, {"namespace", "lab"}, {"name", "pod"}}},
            {"spec", {{"resourceClaims", {{{"name", "g"}, {"resourceClaimName", "gpu"}}}}}}};
  }
  static json ClaimOfPriority(int priority) {
    return testing::ClaimJson("uid-of-claim", json::array({testing::ResultJson("share", "gpu-a-0-of-10")}),
                              json::array({testing::ParametersJson("FromClaim", {{"priority", priority}})}));
  }

  // Asks for the pod again and again, as one that looks after its programs does, until `is_it`.
  template <typename IsIt>
  static bool Becomes(PodTable& table, const std::string& uid, IsIt&& is_it) {
    const TimePoint end = MonotonicClock::now() + testing::kPatience;
    while (!is_it(table.Find(uid))) {
      if (MonotonicClock::now() >= end) return false;
      SleepFor(std::chrono::milliseconds(5));
      table.Attend();
    }
    return true;
  }
  static bool BecomesPriority(PodTable& table, const std::string& uid, int priority) {
    return Becomes(table, uid, [&](const auto& found) { return found && found->priority == priority; });
  }
  bool IsRequestedMoreThan(const char* begin, int count) const {
    const TimePoint end = MonotonicClock::now() + testing::kPatience;
    while (api_.Count(begin) <= count && MonotonicClock::now() < end) SleepFor(std::chrono::milliseconds(5));
    return api_.Count(begin) > count;
  }

  server::testing::TempFolder folder_;
  FakeApiServer api_{folder_.path() + "/account"};
};

TEST_F(KubernetesPodTable, an_api_server_that_does_not_answer_holds_nobody_up) {
  constexpr Duration kHeldUp = std::chrono::seconds(2);
  api_.PutPod(PodJson(kPod, "-5"));
  api_.HoldAnswers("GET ");
  PodTable table(Options());
  TimePoint begin = MonotonicClock::now();
  EXPECT_EQ(table.Find(kPod), std::nullopt);
  ASSERT_TRUE(IsRequestedMoreThan(kReadsClasses, 0));
  EXPECT_EQ(table.Find(kPod), std::nullopt);
  EXPECT_LT(MonotonicClock::now() - begin, kHeldUp);
  api_.ReleaseAnswers();
  ASSERT_TRUE(BecomesPriority(table, kPod, -5));

  api_.HoldAnswers("GET ");
  const int before = api_.Count("GET ");
  ASSERT_TRUE(Becomes(table, kPod, [&](const auto&) { return api_.Count("GET ") > before; }));
  begin = MonotonicClock::now();
  table.Attend();
  EXPECT_EQ(table.Find(kPod)->priority, -5) << "what was known stays";
  EXPECT_EQ(table.Find(kOtherPod), std::nullopt);
  EXPECT_LT(MonotonicClock::now() - begin, kHeldUp);
  api_.ReleaseAnswers();
}

TEST_F(KubernetesPodTable, nobody_is_asked_before_a_pod_is_wanted) {
  PodTable table(Options());
  table.Attend();
  SleepFor(std::chrono::milliseconds(50));
  EXPECT_EQ(api_.Count("GET "), 0);
}

TEST_F(KubernetesPodTable, changes_count_and_pods_that_have_gone_are_forgotten) {
  api_.PutPod(PodJson(kPod, "-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kPod, -5));
  api_.PutPod(PodJson(kPod, "-6"));
  EXPECT_TRUE(BecomesPriority(table, kPod, -6));
  api_.RemovePods();
  EXPECT_TRUE(Becomes(table, kPod, [](const auto& found) { return !found; }));
}

TEST_F(KubernetesPodTable, what_was_known_stays_while_the_api_server_is_down) {
  api_.PutPod(PodJson(kPod, "-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kPod, -5));
  api_.SetDown(true);
  const int before = api_.Count(kReadsClasses);
  ASSERT_TRUE(Becomes(table, kPod, [&](const auto&) { return api_.Count(kReadsClasses) > before + 2; }));
  EXPECT_EQ(table.Find(kPod)->priority, -5);
}

TEST_F(KubernetesPodTable, a_static_pod_has_the_priority_of_its_mirror_pod) {
  testing::FakePodResources kubelet(PodResources());
  kubelet.AddPod("lab", "pod");
  api_.PutPod(MirrorPod("-5"));
  PodTable table(Options());
  EXPECT_TRUE(BecomesPriority(table, kStaticPod, -5));
  api_.PutPod(MirrorPod("-6"));
  EXPECT_TRUE(BecomesPriority(table, kStaticPod, -6));
  EXPECT_THAT(kubelet.faults(), ::testing::IsEmpty());
}

// Whoever may make pods may write the annotation.
TEST_F(KubernetesPodTable, a_mirror_pod_that_the_kubelet_does_not_list_gives_nothing) {
  testing::FakePodResources kubelet(PodResources());
  kubelet.AddPod("other", "pod");
  api_.PutPod(MirrorPod("-5"));
  PodTable table(Options());
  ASSERT_TRUE(Becomes(table, kStaticPod, [&](const auto&) { return kubelet.lists() > 2; }));
  EXPECT_EQ(table.Find(kStaticPod), std::nullopt);
}

TEST_F(KubernetesPodTable, the_kubelet_is_not_asked_where_there_are_no_mirror_pods) {
  testing::FakePodResources kubelet(PodResources());
  api_.PutPod(PodJson(kPod, "-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kPod, -5));
  EXPECT_EQ(kubelet.lists(), 0);
}

TEST_F(KubernetesPodTable,
       a_static_pod_stays_known_while_the_kubelet_starts_again_and_others_are_known_without_it) {
  auto kubelet = MakeKubelet({"pod"});
  api_.PutPod(MirrorPod("-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kStaticPod, -5));
  kubelet.reset();
  api_.PutPod(MirrorPod("-6"));
  api_.PutPod(PodJson(kPod, "-7"));
  EXPECT_TRUE(BecomesPriority(table, kPod, -7));
  EXPECT_TRUE(BecomesPriority(table, kStaticPod, -6));
  kubelet = MakeKubelet({});
  EXPECT_TRUE(Becomes(table, kStaticPod, [](const auto& found) { return !found; }))
      << "the new one does not list it";
}

// It was a pod like any other, with the name that the imitation has now.
TEST_F(KubernetesPodTable, a_name_that_the_kubelet_has_listed_before_makes_no_mirror_pod_while_it_is_away) {
  auto kubelet = MakeKubelet({"pod", "imitation"});
  api_.PutPod(MirrorPod("-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kStaticPod, -5));
  kubelet.reset();
  json imitation = MirrorPod("-255");
  imitation["metadata"]["uid"] = kOtherPod;
  imitation["metadata"]["name"] = "imitation";
  api_.PutPod(imitation);
  api_.PutPod(PodJson(kPod, "-7"));
  ASSERT_TRUE(BecomesPriority(table, kPod, -7));
  EXPECT_EQ(table.Find(kStaticPod)->priority, -5);
}

TEST_F(KubernetesPodTable, a_mirror_pod_that_went_and_came_back_waits_for_the_kubelet) {
  auto kubelet = MakeKubelet({"pod"});
  api_.PutPod(MirrorPod("-5"));
  PodTable table(Options());
  ASSERT_TRUE(BecomesPriority(table, kStaticPod, -5));
  kubelet.reset();
  api_.RemovePods();
  ASSERT_TRUE(Becomes(table, kStaticPod, [](const auto& found) { return !found; }));
  api_.PutPod(MirrorPod("-6"));
  api_.PutPod(PodJson(kPod, "-7"));
  ASSERT_TRUE(BecomesPriority(table, kPod, -7));
  EXPECT_EQ(table.Find(kStaticPod), std::nullopt) << "it may be another one's";
  kubelet = MakeKubelet({"pod"});
  EXPECT_TRUE(BecomesPriority(table, kStaticPod, -6));
}

// When the end begins is not to be seen from outside, so the API server's answer comes later and later. It
// still comes before the table gives up.
TEST_F(KubernetesPodTable, a_table_that_ends_does_not_ask_the_kubelet_any_more) {
  testing::FakePodResources kubelet(PodResources());
  api_.PutPod(MirrorPod("-5"));
  const auto is_asked_at_the_end = [&](Duration delay) {
    const int lists = kubelet.lists();
    const int before = api_.Count(kReadsPods);
    api_.HoldAnswers(kReadsPods);
    auto table = std::make_unique<PodTable>(Options());
    table->Find(kStaticPod);
    EXPECT_TRUE(IsRequestedMoreThan(kReadsPods, before));
    auto ending = std::async(std::launch::async, [&] { table.reset(); });
    SleepFor(delay);
    api_.ReleaseAnswers();
    ending.wait();
    return kubelet.lists() > lists;
  };
  constexpr Duration kLongest = std::chrono::seconds(2);
  Duration delay = std::chrono::milliseconds(10);
  while (is_asked_at_the_end(delay)) {
    delay *= 2;
    ASSERT_LT(delay, kLongest);
  }
}

TEST_F(KubernetesPodTable, a_claim_is_read_once_when_it_is_allocated) {
  api_.PutPod(PodWithClaim());
  api_.PutClaim("lab", "gpu", {{"metadata", {{"uid", "uid-of-claim"}}}});
  PodTable table(Options());
  ASSERT_TRUE(Becomes(table, kPod, [&](const auto& found) {
    return found && !found->priority && api_.Count(kReadsItsClaim) > 1;
  })) << "one that is not allocated says nothing";
  api_.PutClaim("lab", "gpu", ClaimOfPriority(-7));
  ASSERT_TRUE(BecomesPriority(table, kPod, -7));
  const int before = api_.Count(kReadsItsClaim);
  const int lists = api_.Count(kReadsPods);
  ASSERT_TRUE(Becomes(table, kPod, [&](const auto&) { return api_.Count(kReadsPods) > lists + 2; }));
  EXPECT_EQ(api_.Count(kReadsItsClaim), before);
  EXPECT_EQ(table.Find(kPod)->priority, -7);
}

}  // namespace
}  // namespace xsched::kubernetes
