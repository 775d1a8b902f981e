#include "cli/launch_environment.h"

#include <gtest/gtest.h>

#include <map>

namespace xsched::cli {
namespace {

constexpr char kShim[] = "/lib/libshimopencl.so";
const Shim kOpenCl = {kShim, "OPENCL_LAYERS"};
const Shim kCuda = {"/lib/libshimcuda.so", ""};
const Shim kHip = {"/lib/libshimhip.so", ""};

// The environment of a program that is launched from one with `before`.
std::map<std::string, std::string> After(std::map<std::string, std::string> environment,
                                         const LaunchOptions& options,
                                         const std::vector<Shim>& shims = {kOpenCl}) {
  auto before = environment;
  for (const Variable& variable :
       LaunchEnvironment(options, shims, [&](const std::string& name) { return before[name]; })) {
    if (variable.value) {
      environment[variable.name] = *variable.value;
    } else {
      environment.erase(variable.name);
    }
  }
  return environment;
}

// As LD_PRELOAD names it.
std::string Pre(const std::string& library) { return ForPreloading(library); }

using Environment = std::map<std::string, std::string>;

TEST(LaunchEnvironment, sets_what_was_asked_for_and_no_other_hint) {
  LaunchOptions options;
  options.priority = -3;
  options.batch_size = 4;
  EXPECT_EQ(After({}, options), (Environment{{"XSCHED_AUTO_XQUEUE", "ON"},
                                             {"XSCHED_SCHEDULER", "GLB"},
                                             {"XSCHED_AUTO_XQUEUE_PRIORITY", "-3"},
                                             {"XSCHED_AUTO_XQUEUE_BATCH_SIZE", "4"},
                                             {"OPENCL_LAYERS", kShim}}));
}

TEST(LaunchEnvironment, a_reservation_is_given_as_a_whole) {
  LaunchOptions options;
  options.reservation = {.guarantee_us = 5000, .period_us = 10'000};
  const std::vector<Variable> variables =
      LaunchEnvironment(options, {}, [](const auto&) { return std::string(); });
  const auto value_of = [&](const std::string& name) {
    for (const Variable& variable : variables) {
      if (variable.name == "XSCHED_AUTO_XQUEUE_" + name) return variable.value.value_or("unset");
    }
    return std::string("as it was");
  };
  EXPECT_EQ(value_of("GUARANTEE"), "5000");
  EXPECT_EQ(value_of("PERIOD"), "10000");
  EXPECT_EQ(value_of("LIMIT"), "unset") << "one that the program would inherit may contradict these";
  EXPECT_EQ(value_of("BURST"), "unset");
  EXPECT_EQ(value_of("WEIGHT"), "as it was");
}

TEST(LaunchEnvironment, a_program_is_of_a_fresh_job_unless_it_is_of_one_already) {
  LaunchOptions options;
  options.job = "fresh";
  EXPECT_EQ(After({}, options)["XSCHED_JOB"], "fresh");
  EXPECT_EQ(After({{"XSCHED_JOB", "training"}}, options)["XSCHED_JOB"], "training");
  options.gang = "both";
  EXPECT_EQ(After({{"XSCHED_JOB", "training"}}, options)["XSCHED_JOB"], "both");
}

TEST(LaunchEnvironment, a_limit_of_memory_comes_with_its_account_and_never_with_an_older_one) {
  LaunchOptions options;
  EXPECT_EQ(After({{"XSCHED_MEMORY", "7"}, {"XSCHED_MEMORY_ACCOUNT", "/older"}}, options)["XSCHED_MEMORY"],
            "7")
      << "of the program that runs xsched";
  options.memory = uint64_t{20} << 30;
  options.memory_account = "/account";
  Environment after = After({{"XSCHED_MEMORY_ACCOUNT", "/older"}}, options);
  EXPECT_EQ(after["XSCHED_MEMORY"], "21474836480");
  EXPECT_EQ(after["XSCHED_MEMORY_ACCOUNT"], "/account");
  options.memory_account = "";
  EXPECT_FALSE(After({{"XSCHED_MEMORY_ACCOUNT", "/older"}}, options).contains("XSCHED_MEMORY_ACCOUNT"));
}

TEST(LaunchEnvironment, keeps_layers_and_preloaded_libraries_that_are_there) {
  LaunchOptions options;
  EXPECT_EQ(After({{"OPENCL_LAYERS", "/other.so"}}, options)["OPENCL_LAYERS"],
            "/lib/libshimopencl.so:/other.so");
  options.route = "preload";
  Environment after = After({{"LD_PRELOAD", "/x.so:/y.so"}, {"OPENCL_LAYERS", "/other.so"}}, options);
  EXPECT_EQ(after["LD_PRELOAD"], Pre("/lib/libshimopencl.so") + ":/x.so:/y.so");
  EXPECT_EQ(after["OPENCL_LAYERS"], "/other.so");
}

TEST(LaunchEnvironment, cuda_and_hip_are_always_preloaded) {
  const std::vector<Shim> both{kOpenCl, kCuda};
  const std::vector<Shim> all{kOpenCl, kCuda, kHip};
  LaunchOptions options;
  EXPECT_EQ(After({{"LD_PRELOAD", "/x.so"}}, options, both)["LD_PRELOAD"],
            Pre("/lib/libshimcuda.so") + ":/x.so");
  options.route = "preload";
  Environment once = After({}, options, both);
  EXPECT_EQ(once["LD_PRELOAD"], Pre("/lib/libshimcuda.so") + ":" + Pre("/lib/libshimopencl.so"));
  EXPECT_EQ(After(once, options, both), once);
  EXPECT_EQ(
      After({}, options, all)["LD_PRELOAD"],
      Pre("/lib/libshimhip.so") + ":" + Pre("/lib/libshimcuda.so") + ":" + Pre("/lib/libshimopencl.so"));
}

TEST(LaunchEnvironment, the_runtimes_of_sanitizers_stay_the_first_libraries) {
  const std::string ours = Pre("/lib/libshimhip.so") + ":" + Pre("/lib/libshimcuda.so");
  const auto after = [](const std::string& preloaded) {
    return After({{"LD_PRELOAD", preloaded}}, {}, {kCuda, kHip})["LD_PRELOAD"];
  };
  EXPECT_EQ(after("/usr/lib/libasan.so.8"), "/usr/lib/libasan.so.8:" + ours);
  EXPECT_EQ(after("libasan.so.8 /x/libubsan.so.1:/x.so"), "libasan.so.8:/x/libubsan.so.1:" + ours + ":/x.so");
  EXPECT_EQ(after("/usr/lib/llvm/libclang_rt.asan-x86_64.so:"),
            "/usr/lib/llvm/libclang_rt.asan-x86_64.so:" + ours);
  EXPECT_EQ(after(after("libtsan.so.2:/x.so")), "libtsan.so.2:" + ours + ":/x.so");
  EXPECT_EQ(after("/libasan.so.8/x.so"), ours + ":/libasan.so.8/x.so");
}

TEST(LaunchEnvironment, of_a_program_that_it_would_end_has_nothing_of_ours_preloaded) {
  const std::vector<Shim> shims{kOpenCl, kCuda};
  LaunchOptions options;
  const Environment outer = After({{"LD_PRELOAD", "/x.so"}}, options, shims);
  options.preload = false;
  EXPECT_EQ(After(outer, options, shims)["LD_PRELOAD"], "/x.so");
  const Environment sanitized = After({{"LD_PRELOAD", "libasan.so.8 "}}, LaunchOptions{}, shims);
  EXPECT_EQ(After(sanitized, options, shims)["LD_PRELOAD"], "libasan.so.8");
  EXPECT_EQ(After(After({}, LaunchOptions{}, shims), options, shims).count("LD_PRELOAD"), 0u);
}

TEST(LaunchEnvironment, of_a_run_within_a_run_has_one_shim) {
  LaunchOptions options;
  Environment once = After({{"OPENCL_LAYERS", "/other.so"}}, options);
  EXPECT_EQ(After(once, options), once);
  // Another file whose name only begins alike is another library.
  EXPECT_EQ(After({{"OPENCL_LAYERS", "/lib/libshimopencl.so.2"}}, options)["OPENCL_LAYERS"],
            "/lib/libshimopencl.so:/lib/libshimopencl.so.2");
}

TEST(LaunchEnvironment, an_inherited_policy_does_not_take_the_program_from_the_server) {
  LaunchOptions options;
  EXPECT_EQ(After({{"XSCHED_POLICY", "UP"}}, options).count("XSCHED_POLICY"), 0u);
  options.scheduler = "APP";
  EXPECT_EQ(After({{"XSCHED_POLICY", "UP"}}, options).count("XSCHED_POLICY"), 0u);
}

TEST(LaunchEnvironment, a_local_scheduler_has_the_policy_given_or_inherited_or_HPF) {
  LaunchOptions options;
  options.scheduler = "LCL";
  EXPECT_EQ(After({}, options)["XSCHED_POLICY"], "HPF");
  EXPECT_EQ(After({{"XSCHED_POLICY", "UP"}}, options)["XSCHED_POLICY"], "UP");
  options.policy = "HPF";
  EXPECT_EQ(After({{"XSCHED_POLICY", "UP"}}, options)["XSCHED_POLICY"], "HPF");
}

}  // namespace
}  // namespace xsched::cli
