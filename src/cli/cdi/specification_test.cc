#include "cli/cdi/specification.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/reach.h"

namespace xsched::cli {
namespace {

using nlohmann::ordered_json;

CdiSpecification WithBothShims() {
  return {.kind = "xsched.org/class",
          .devices = DefaultClasses(),
          .route = "layer",
          .shims = {{"/usr/lib/libshimopencl.so", "OPENCL_LAYERS"}, {"/usr/lib/libshimcuda.so", ""}},
          .libraries = {"/usr/lib/libshimopencl.so", "/usr/lib/libpreempt.so.2"},
          .socket = "/run/user/1000/xsched/own.sock"};
}

ordered_json MountOf(const char* host, const char* container) {
  return {{"hostPath", host}, {"containerPath", container}, {"options", {"ro", "nosuid", "nodev", "bind"}}};
}

TEST(CdiSpecification, has_exactly_these_fields) {
  const std::string preloaded = ForPreloading("/opt/xsched/lib/libshimcuda.so");
  ordered_json socket_folder = MountOf("/run/user/1000/xsched", "/run/xsched");
  socket_folder["options"].push_back("noexec");
  auto device = [](const char* name, const char* variable) {
    return ordered_json{{"name", name}, {"containerEdits", {{"env", {variable}}}}};
  };
  const ordered_json wanted = {
      {"cdiVersion", "0.5.0"},
      {"kind", "xsched.org/class"},
      {"devices",
       {device("urgent", "XSCHED_AUTO_XQUEUE_PRIORITY=10"), device("normal", "XSCHED_AUTO_XQUEUE_PRIORITY=0"),
        device("batch", "XSCHED_AUTO_XQUEUE_PRIORITY=-10")}},
      {"containerEdits",
       {{"env",
         {"XSCHED_AUTO_XQUEUE=ON", "XSCHED_SCHEDULER=GLB", "OPENCL_LAYERS=/opt/xsched/lib/libshimopencl.so",
          "LD_PRELOAD=" + preloaded, "XSCHED_SOCKET=/run/xsched/own.sock"}},
        {"mounts",
         {socket_folder, MountOf("/usr/lib/libshimopencl.so", "/opt/xsched/lib/libshimopencl.so"),
          MountOf("/usr/lib/libpreempt.so.2", "/opt/xsched/lib/libpreempt.so.2")}}}}};
  EXPECT_EQ(CdiJson(WithBothShims()), wanted) << CdiJson(WithBothShims()).dump(2);
}

TEST(CdiSpecification, by_the_route_preload_names_no_layer) {
  CdiSpecification specification = WithBothShims();
  specification.route = "preload";
  const std::string text = CdiJson(specification).dump();
  EXPECT_EQ(text.find("OPENCL_LAYERS"), std::string::npos) << text;
  EXPECT_NE(text.find(ForPreloading("/opt/xsched/lib/libshimopencl.so")), std::string::npos) << text;
}

// Whichever policy of shares decides, it finds the hint that it reads.
TEST(CdiSpecification, a_share_is_a_utilization_and_a_weight_and_reserves_nothing) {
  CdiSpecification specification = WithBothShims();
  specification.devices = Shares();
  const ordered_json devices = CdiJson(specification)["devices"];
  ASSERT_EQ(devices.size(), 100u);
  EXPECT_EQ(
      devices[29],
      (ordered_json{{"name", "30"},
                    {"containerEdits",
                     {{"env", {"XSCHED_AUTO_XQUEUE_UTILIZATION=30", "XSCHED_AUTO_XQUEUE_WEIGHT=30"}}}}}));
}

// An engine refuses a file with two devices of one name, with a name that is none, or with a device that
// changes nothing.
TEST(CdiSpecification, every_device_has_a_valid_name_of_its_own_and_hints) {
  for (const std::vector<CdiDevice>& devices : {DefaultClasses(), Shares()}) {
    std::set<std::string> names;
    for (const CdiDevice& device : devices) {
      EXPECT_EQ(ProblemOfDeviceName(device.name), "");
      EXPECT_TRUE(HasHints(device)) << device.name;
      EXPECT_TRUE(names.insert(device.name).second) << device.name;
    }
  }
  EXPECT_FALSE(HasHints({"empty", {}}));
}

TEST(CdiSpecification, names_are_letters_and_digits_and_what_may_stand_between_them) {
  for (const char* name : {"urgent", "a", "0", "50", "serve-1.b_c"}) EXPECT_EQ(ProblemOfDeviceName(name), "");
  for (const char* name : {"", "-a", "a-", "a b", "a/b", "a=b", "ä", ".", "a:b"})
    EXPECT_NE(ProblemOfDeviceName(name), "") << name;
}

}  // namespace
}  // namespace xsched::cli
