#include "kubernetes/resource_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kubernetes/testing/published_slice.h"

namespace xsched::kubernetes {
namespace {

using nlohmann::json;
using testing::ProblemOfSlice;

const NodeReference kNode = {"node-1", "uid-of-node"};

json Devices(const std::string& name) {
  return json::array({{{"name", name}, {"capacity", {{"share", {{"value", "10"}}}}}}});
}

// As the server has it after these changes.
json Applied(json items, const std::vector<ApiRequest>& changes) {
  for (const ApiRequest& change : changes) {
    json slice = json::parse(change.body.dump());
    const std::string name = change.path.substr(change.path.rfind('/') + 1);
    auto has_name = [&](const json& item) { return item["metadata"]["name"] == name; };
    if (change.method == "POST") {
      EXPECT_EQ(change.path, kResourceSlices);
      EXPECT_EQ(slice["metadata"]["generateName"], "node-1-gpu.xsched.org-");
      slice["metadata"]["name"] = "made-" + std::to_string(items.size());
      slice["metadata"]["uid"] = "uid";
      slice["metadata"]["resourceVersion"] = "1";
      items.push_back(slice);
    } else if (change.method == "PUT") {
      *std::find_if(items.begin(), items.end(), has_name) = slice;
    } else {
      EXPECT_EQ(change.method, "DELETE");
      items.erase(std::find_if(items.begin(), items.end(), has_name));
    }
    EXPECT_EQ(change.method == "DELETE" ? "" : ProblemOfSlice(slice), "");
  }
  return items;
}

std::vector<ApiRequest> Changes(const json& items, const WantedSlices& wanted) {
  Result<std::vector<ApiRequest>> changes = ChangesOf(json{{"items", items}}.dump(), wanted, kNode);
  EXPECT_TRUE(changes) << changes.error().text();
  return changes ? *changes : std::vector<ApiRequest>();
}

TEST(KubernetesResourceSlices, are_made_with_the_driver_the_node_and_its_pool) {
  const auto changes = Changes(nullptr, {{Devices("a"), Devices("b")}, {}});
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].method, "POST");
  const json& slice = changes[1].body;
  EXPECT_EQ(slice["spec"], json::parse(R"({"driver": "gpu.xsched.org", "nodeName": "node-1",
    "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 2},
    "devices": [{"name": "b", "capacity": {"share": {"value": "10"}}}]})"));
  EXPECT_EQ(slice["metadata"]["ownerReferences"], json::parse(R"([{"apiVersion": "v1", "kind": "Node",
    "name": "node-1", "uid": "uid-of-node", "controller": true}])"));
}

TEST(KubernetesResourceSlices, that_are_as_wanted_stay_as_they_are_in_any_order) {
  const WantedSlices wanted{{Devices("a"), Devices("b")}, {}};
  json items = Applied(json::array(), Changes(nullptr, wanted));
  EXPECT_TRUE(Changes(items, wanted).empty());
  std::swap(items[0], items[1]);
  EXPECT_TRUE(Changes(items, wanted).empty());
  EXPECT_TRUE(Changes(nullptr, {}).empty());
}

TEST(KubernetesResourceSlices, have_a_new_generation_after_each_change) {
  const WantedSlices first{{Devices("a"), Devices("b")}, {}};
  const WantedSlices second{{Devices("a"), Devices("c")}, {}};
  const json before = Applied(json::array(), Changes(nullptr, first));
  const auto changes = Changes(before, second);
  ASSERT_EQ(changes.size(), 2u);
  for (const ApiRequest& change : changes) {
    EXPECT_EQ(change.method, "PUT");
    EXPECT_EQ(change.body["spec"]["pool"]["generation"], 2);
    EXPECT_EQ(change.body["metadata"]["resourceVersion"], "1")
        << "the server refuses it if another one was quicker";
  }
  EXPECT_TRUE(Changes(Applied(before, changes), second).empty());
}

TEST(KubernetesResourceSlices, that_are_too_many_or_of_different_generations_are_put_right) {
  const WantedSlices two{{Devices("a"), Devices("b")}, {}};
  const WantedSlices one{{Devices("a")}, {}};
  json items = Applied(json::array(), Changes(nullptr, two));
  const auto changes = Changes(items, one);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].method, "DELETE");
  EXPECT_EQ(changes[1].path, std::string(kResourceSlices) + "/made-1");
  EXPECT_TRUE(Changes(Applied(items, changes), one).empty());
  items[0]["spec"]["pool"]["generation"] = 7;
  EXPECT_EQ(Changes(items, two).at(0).body["spec"]["pool"]["generation"], 8);
  EXPECT_EQ(Changes(items, {}).size(), 2u) << "a node without GPUs has none";
}

TEST(KubernetesResourceSlices, of_a_node_that_was_registered_anew_get_its_new_uid) {
  const WantedSlices wanted{{Devices("a")}, {}};
  json items = Applied(json::array(), Changes(nullptr, wanted));
  items[0]["metadata"]["ownerReferences"][0]["uid"] = "former-uid";
  const auto changes = Changes(items, wanted);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].body["metadata"]["ownerReferences"][0]["uid"], "uid-of-node");
}

TEST(KubernetesResourceSlices, of_which_the_server_has_kept_less_are_not_sent_again) {
  json items = Applied(json::array(), Changes(nullptr, {{Devices("a")}, {}}));
  const WantedSlices wanted{{json::array({{{"name", "a"}, {"allowMultipleAllocations", true}}})},
                            {json::array({{{"name", "a"}}})}};
  items[0]["spec"]["devices"] = wanted.kept[0];
  EXPECT_TRUE(Changes(items, wanted).empty());
  EXPECT_EQ(Changes(items, {wanted.devices, {}}).size(), 1u);
}

TEST(KubernetesResourceSlices, an_answer_that_is_no_list_changes_nothing) {
  for (const char* text : {"", "[]", "{}", "null", R"({"items": "x"})", R"({"items": {}})", "\xff"})
    EXPECT_FALSE(ChangesOf(text, {{Devices("a")}, {}}, kNode)) << text;
  EXPECT_EQ(
      Changes(json::parse(R"([1, null, {}, {"metadata": 3}, {"spec": []}])"), {{Devices("a")}, {}}).size(),
      1u)
      << "what is no slice is left alone";
}

TEST(KubernetesResourceSlices, are_asked_for_by_driver_and_node) {
  EXPECT_EQ(PathOfSlices("node-1"),
            "/apis/resource.k8s.io/v1/resourceslices?fieldSelector="
            "spec.driver%3Dgpu.xsched.org,spec.nodeName%3Dnode-1");
}

}  // namespace
}  // namespace xsched::kubernetes
