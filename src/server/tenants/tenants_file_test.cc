#include "server/tenants/tenants_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "sched/core/reservation.h"

namespace xsched::server {
namespace {

TenantRules Rules(const std::string& text) {
  Result<TenantRules> rules = ParseTenantRules(text, "t.toml");
  EXPECT_TRUE(rules) << rules.error().text();
  return rules ? *rules : TenantRules{};
}

std::string ErrorOf(const std::string& text) {
  Result<TenantRules> rules = ParseTenantRules(text, "t.toml");
  return rules ? "" : rules.error().text();
}

// "": none matches.
std::string TenantOf(const TenantRules& rules, const Peer& peer, const ProcessIdentity& process) {
  const TenantRule* rule = rules.Find(peer, process);
  return rule == nullptr ? "" : rule->TenantOf(peer, process);
}

std::string NameOf(const TenantRule* rule) { return rule == nullptr ? "" : rule->name; }

TEST(TenantsFile, an_empty_one_lets_users_lower_priorities_and_not_raise_them) {
  const TenantRules rules = Rules("");
  EXPECT_TRUE(rules.tenants.empty());
  EXPECT_EQ(rules.others, TenantRights{});
  EXPECT_EQ(rules.others.max_priority, 0);
}

// Found by a fuzzer: in a key, undefined behavior of the library that reads the file.
TEST(TenantsFile, only_comments_may_have_characters_other_than_ascii) {
  EXPECT_EQ(ErrorOf("# für alle\n[default] # ä\nweight = 50\n"), "");
  EXPECT_EQ(ErrorOf("[default]\nweight\xc3\xa4 = 50\n"),
            "t.toml:2: only a comment may have characters other than ASCII, and no text before it");
  EXPECT_NE(ErrorOf("[\xc3\xa4]\n"), "");
  EXPECT_NE(ErrorOf("[class.a]\n[class]\nb = { \"#\" = 1, \xc3\xa4 = 1 }\n"), "");
  EXPECT_EQ(ErrorOf("name = '''\n# \xef\xbb\xbd\n''' \xef\xbb\xbd\n"),
            "t.toml:1: a text must be in one line: there are no ''' and \"\"\" here")
      << "a # in it begins no comment";
}

TEST(TenantsFile, a_tenant_has_what_it_says_then_what_its_class_says_then_the_default) {
  const TenantRules rules = Rules(R"(
[default]
weight = 50
max_priority = -1
memory = "1MiB"
[class.paid]
weight = 200
max_priority = 20
memory = "2GiB"
limit = 50
[[tenant]]
name = "a"
users = [1000]
class = "paid"
weight = 300
[[tenant]]
name = "b"
users = [1001]
)");
  EXPECT_EQ(rules.tenants[0].rights.share.weight, 300);
  EXPECT_EQ(rules.tenants[0].rights.max_priority, 20);
  EXPECT_EQ(rules.tenants[0].rights.share.limit_us, 50'000);
  EXPECT_EQ(rules.tenants[0].rights.share.period_us, 100'000);
  EXPECT_EQ(rules.tenants[1].rights.share.weight, 50);
  EXPECT_EQ(rules.tenants[1].rights.max_priority, -1);
  EXPECT_EQ(rules.tenants[0].rights.memory, uint64_t{2} << 30);
  EXPECT_EQ(rules.tenants[1].rights.memory, uint64_t{1} << 20);
  EXPECT_EQ(rules.others.memory, uint64_t{1} << 20);
  EXPECT_TRUE(rules.LimitMemory());
  EXPECT_EQ(rules.others.share.weight, 50);
}

TEST(TenantsFile, a_tenant_can_be_exempted_from_a_limit_and_from_one_of_memory) {
  const TenantRules rules = Rules(R"(
[default]
limit = 20
burst_us = 5000
memory = "1GiB"
[[tenant]]
name = "free"
users = [1]
limit = 100
memory = "none"
[[tenant]]
name = "guaranteed"
users = [2]
guarantee = 30
limit = 100
)");
  EXPECT_EQ(rules.tenants[0].rights, TenantRights{});
  EXPECT_EQ(rules.tenants[1].rights.share.guarantee_us, 30'000);
  EXPECT_EQ(rules.tenants[1].rights.share.limit_us, 0);
  EXPECT_EQ(rules.tenants[1].rights.memory, uint64_t{1} << 30);
  EXPECT_EQ(rules.others.share.limit_us, 20'000);
}

TEST(TenantsFile, the_first_tenant_that_matches_in_everything_it_names_counts) {
  const std::string id(64, 'b');
  const TenantRules rules = Rules(R"(
[[tenant]]
name = "root in a job"
users = ["root"]
jobs = [7, "1?"]
[[tenant]]
name = "group"
groups = [50]
[[tenant]]
name = "service"
cgroups = ["/system.slice/serve*.service"]
[[tenant]]
name = "container"
containers = ["bbbb*"]
[[tenant]]
name = "pod"
pods = ["1b2c3d4e-0001-4002-8003-123456789abc"]
)");
  const Peer root{1, 0, {0}};
  const Peer user{1, 1000, {1000, 50}};
  const Peer other{1, 1001, {1001}};
  EXPECT_EQ(NameOf(rules.Find(root, {.job = "7"})), "root in a job");
  EXPECT_EQ(NameOf(rules.Find(root, {.job = "12"})), "root in a job");
  EXPECT_EQ(NameOf(rules.Find(root, {.job = "77"})), "");
  EXPECT_EQ(NameOf(rules.Find(root, {})), "");
  EXPECT_EQ(NameOf(rules.Find(user, {.cgroup = "/system.slice/serve.service"})), "group");
  EXPECT_EQ(NameOf(rules.Find(other, {.cgroup = "/system.slice/serve.service"})), "service");
  EXPECT_EQ(NameOf(rules.Find(other, {.cgroup = "/system.slice/serve@1.service/sub/group"})), "service");
  EXPECT_EQ(NameOf(rules.Find(other, {.cgroup = "/user.slice/system.slice/serve.service"})), "");
  EXPECT_EQ(NameOf(rules.Find(other, {.container = id})), "container");
  EXPECT_EQ(NameOf(rules.Find(other, {.pod = "1b2c3d4e-0001-4002-8003-123456789abc"})), "pod");
}

TEST(TenantsFile, each_makes_a_tenant_for_each_job_pod_container_or_user_of_those_that_match) {
  const TenantRules rules = Rules(R"(
[[tenant]]
name = "nightly"
groups = [50]
each = "job"
[[tenant]]
name = "serving"
pods = ["1b*"]
each = "pod"
[[tenant]]
name = "tools"
each = "container"
[[tenant]]
name = "students"
groups = [60]
each = "user"
)");
  const Peer user{1, 1000, {1000, 50}};
  const Peer other{1, 1001, {1001, 60}};
  EXPECT_EQ(TenantOf(rules, user, {.job = "7"}), "nightly/7");
  EXPECT_EQ(TenantOf(rules, user, {.job = "8"}), "nightly/8");
  EXPECT_EQ(TenantOf(rules, user, {}), "") << "it is in no job";
  EXPECT_EQ(TenantOf(rules, other, {.job = "7"}), "students/1001");
  EXPECT_EQ(TenantOf(rules, user, {.pod = "1b2c3d4e-0001-4002-8003-123456789abc"}),
            "serving/1b2c3d4e-0001-4002-8003-123456789abc");
  EXPECT_EQ(TenantOf(rules, user, {.pod = "2b2c3d4e-0001-4002-8003-123456789abc"}), "");
  EXPECT_EQ(TenantOf(rules, user, {.container = "0123456789ab" + std::string(52, 'c')}),
            "tools/0123456789ab");
}

TEST(TenantsFile, each_control_group_that_is_matched_is_a_tenant_with_those_below_it) {
  const TenantRules rules = Rules(R"(
[[tenant]]
name = "serve"
cgroups = ["/system.slice/serve@*.service"]
each = "cgroup"
)");
  const Peer user{1, 1000, {1000}};
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/system.slice/serve@1.service"}),
            "serve/system.slice/serve@1.service");
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/system.slice/serve@1.service/a.service/b"}),
            "serve/system.slice/serve@1.service");
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/system.slice/serve@2.service"}),
            "serve/system.slice/serve@2.service");
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/system.slice/other.service"}), "");
  EXPECT_EQ(TenantOf(rules, user, {}), "");
}

TEST(TenantsFile, what_each_would_name_too_long_or_unreadable_is_the_tenant_of_the_rule_itself) {
  const TenantRules rules = Rules("[[tenant]]\nname = 'a'\ncgroups = ['/s/*']\neach = 'cgroup'\n");
  const Peer user{1, 1000, {1000}};
  const size_t fits = kMaxTenantName - std::string("a/s/").size();
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/s/" + std::string(fits, 'x')}),
            "a/s/" + std::string(fits, 'x'));
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/s/" + std::string(fits + 1, 'x')}), "a");
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/s/\xc3\xa4"}), "a");
}

TEST(TenantsFile, what_each_makes_has_the_rights_of_its_rule) {
  const TenantRules rules = Rules(R"(
[default]
weight = 10
[[tenant]]
name = "night"
each = "job"
weight = 20
[[tenant]]
name = "nightly"
users = [1]
weight = 30
)");
  EXPECT_EQ(rules.RightsOf("night/7").share.weight, 20);
  EXPECT_EQ(rules.RightsOf("night").share.weight, 20);
  EXPECT_EQ(rules.RightsOf("nightly").share.weight, 30);
  EXPECT_EQ(rules.RightsOf("nightly/7").share.weight, 10);
}

struct BadFile {
  const char* text;
  const char* error;
};

TEST(TenantsFile, each_fault_is_refused_with_its_line_and_the_reason) {
  constexpr BadFile kFiles[] = {
      {"weight", "t.toml:1: "},
      {"[default]\nwieght = 3\n", "t.toml:2: [default] has no setting wieght"},
      {"[default]\nweight = 0\n", "t.toml:2: weight must be a whole number from 1 to"},
      {"[default]\nweight = 1.5\n", "t.toml:2: weight must be a whole number"},
      {"[default]\nguarantee = 10\n", "t.toml:1: [default] has no guarantee"},
      {"[default]\nmax_priority = 256\n", "t.toml:2: max_priority must be a whole number from"},
      {"[default]\nmemory = 20\n", "t.toml:2: memory must be a size such as \"20GiB\""},
      {"[default]\n\nmemory = '20 apples'\n", "t.toml:3: memory must be a size such as \"20GiB\""},
      {"[default]\nlimit = 101\n", "t.toml:2: limit must be a percentage"},
      {"tenants = 3\n", "t.toml:1: there is no setting tenants"},
      {"[tenant]\nname = \"a\"\n", "t.toml:1: tenants are written as [[tenant]]"},
      {"[[tenant]]\nusers = [1]\n", "t.toml:1: a tenant must have a name"},
      {"[[tenant]]\nname = \"a\"\n", "t.toml:1: tenant a needs users"},
      {"[[tenant]]\nname = \"a\"\nusers = []\n", "t.toml:3: users must be a list with one element at least"},
      {"[[tenant]]\nname = \"a\"\nusers = [\"no such user here\"]\n",
       "t.toml:3: there is no user no such user here"},
      {"[[tenant]]\nname = \"a\"\ngroups = [-1]\n", "t.toml:3: group must be a whole number from 0"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\nclass = \"x\"\n", "t.toml:4: there is no class x"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\ncolor = 1\n", "t.toml:4: a tenant has no setting color"},
      {"[[tenant]]\nname = \"uid:1\"\nusers = [1]\n", "t.toml:1: a tenant cannot have the name uid:1"},
      {"[[tenant]]\nname = \"others\"\nusers = [1]\n", "t.toml:1: a tenant cannot have the name others"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\n[[tenant]]\nname = \"a\"\nusers = [2]\n",
       "t.toml:4: there are two tenants a"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\nguarantee = 60\nlimit = 50\n",
       "t.toml:1: guarantee = 60 (of the tenant), limit = 50 (of the tenant) do not fit together"},
      {"[default]\nlimit = 5\n[class.c]\nguarantee = 20\nperiod_us = 50000\n[[tenant]]\nname = \"a\"\nusers "
       "= [1]\nclass = "
       "\"c\"\n",
       "t.toml:6: guarantee = 20 (of [class.c]), limit = 5 (of [default]), period_us = 50000 (of [class.c]) "
       "do not "
       "fit together: the limit must not be less than the guarantee"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\nguarantee = 10\nlimit = 0\n",
       "t.toml:1: guarantee = 10 (of the tenant), limit = 0 (of the tenant) do not fit together"},
      {"[[tenant]]\nname = \"a\"\neach = \"group\"\n",
       "t.toml:3: each must be \"user\", \"cgroup\", \"container\", \"pod\" or \"job\""},
      {"[[tenant]]\nname = \"a\"\neach = [\"job\"]\n", "t.toml:3: each must be \"user\""},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\neach = \"cgroup\"\n",
       "t.toml:1: each = \"cgroup\" needs cgroups: each group that they match is a tenant"},
      {"[class.a]\nguarantee = 1\n[[tenant]]\nname = \"a\"\neach = \"job\"\nclass = \"a\"\n",
       "t.toml:3: a tenant with each has no guarantee: it is for any number of tenants"},
      {"[[tenant]]\nname = \"a/1\"\nusers = [1]\n[[tenant]]\nname = \"a\"\neach = \"job\"\n",
       "t.toml:4: tenant a/1 has a name as each of tenant a makes them"},
      {"[[tenant]]\nname = \"a\"\neach = \"job\"\n[[tenant]]\nname = \"a/1\"\nusers = [1]\n",
       "t.toml:4: tenant a/1 has a name as each of tenant a makes them"},
      {"[[tenant]]\nname = \"a\"\nusers = [1]\nguarantee = 60\n[[tenant]]\nname = \"b\"\nusers = "
       "[2]\nguarantee = 41\n",
       "t.toml:5: with tenant b, the guarantees are 101.0 % of a device"},
      {"[class.x]\nguarantee = 50\nlimit = 10\n",
       "t.toml:1: guarantee = 50 (of [class.x]), limit = 10 (of [class.x]) do not fit together"},
      {"[[tenant]]\nname = \"\"\nusers = [1]\n", "t.toml:2: name must not be empty"},
      {"[[tenant]]\nname = 3\nusers = [1]\n", "t.toml:2: name must be a text"},
  };
  for (const BadFile& file : kFiles)
    EXPECT_EQ(ErrorOf(file.text).rfind(file.error, 0), 0u) << ErrorOf(file.text);
}

TEST(TenantsFile, a_pattern_that_can_match_nothing_is_refused_with_its_line_and_the_reason) {
  auto error_of = [](const std::string& list) {
    return ErrorOf("[[tenant]]\nname = 'a'\nusers = [1]\n" + list + "\n");
  };
  const std::string id(64, 'a');
  constexpr const char* kBad[][2] = {
      {"cgroups = ['/a', 'system.slice']",
       "t.toml:4: \"system.slice\" in cgroups can match nothing: the path of a control group begins with /"},
      {"cgroups = ['/a/']", "ends without a /"},
      {"cgroups = ['/a//b']", "has no //"},
      {"cgroups = ['/a[b']", "a [ is not closed"},
      {"cgroups = ['/a\\']", "a [ is not closed, or a \\ ends it"},
      {"containers = ['1f3a']",
       "a container's id has 64 characters of 0-9 and a-f; for its beginning alone, add"},
      {"containers = ['1F3A*']", "a container's id"},
      {"containers = ['[A-F]*']", "a container's id"},
      {"containers = ['serve']", "a container's id"},
      {"pods = ['xyz']", "t.toml:4: \"xyz\" in pods can match nothing: a pod's uid has 32 to 36 characters"},
      {"pods = ['xyz*']", "a pod's uid"},
      {"pods = ['1b2c']", "a pod's uid"},
      {"jobs = ['12.0']",
       "t.toml:4: \"12.0\" in jobs can match nothing: the number of a Slurm job has digits"},
      {"jobs = ['123456789012345678901*']", "the number of a Slurm job"},
  };
  for (const auto& [list, reason] : kBad)
    EXPECT_NE(error_of(list).find(reason), std::string::npos) << list << ": " << error_of(list);
  for (const std::string& good :
       {std::string("cgroups = ['/', '*', '/a*', '*/b', '/[ab]', '/a[]b]', '/a[[:digit:]]', '/a[[]b']"),
        "containers = ['*', '1f*', '[!g]*', '?f*', '" + id + "']",
        std::string("pods = ['*', '1b2c3d4e-*', '1b2c3d4e-0001-4002-8003-123456789abc']"),
        std::string("jobs = ['*', 12, '1[0-9]', '12?']")}) {
    EXPECT_EQ(error_of(good), "");
  }
}

TEST(TenantsFile, the_control_group_slash_is_all_of_them) {
  const TenantRules rules = Rules("[[tenant]]\nname = 'a'\ncgroups = ['/']\n");
  const Peer user{1, 1000, {1000}};
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/"}), "a");
  EXPECT_EQ(TenantOf(rules, user, {.cgroup = "/system.slice/serve.service"}), "a");
  EXPECT_EQ(TenantOf(rules, user, {}), "") << "its control group is not known";
}

TEST(TenantsFile, one_that_does_not_exist_is_as_an_empty_one_unless_it_was_asked_for) {
  Result<TenantRules> none = ReadTenantRules("/nonexistent/tenants.toml", false);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->no_file && none->tenants.empty());
  Result<TenantRules> rules = ReadTenantRules("/nonexistent/tenants.toml", true);
  ASSERT_FALSE(rules);
  EXPECT_EQ(std::string(rules.error().text()).rfind("cannot read /nonexistent/tenants.toml: No such", 0), 0u);
}

TEST(TenantsFile, a_folder_is_no_file) { EXPECT_FALSE(ReadTenantRules("/", false)); }

// The packages install it.
TEST(TenantsFile, the_example_is_valid_and_changes_nothing_as_it_is) {
  Result<TenantRules> rules = ReadTenantRules(EXAMPLE_FILE, true);
  ASSERT_TRUE(rules) << rules.error().text();
  EXPECT_TRUE(rules->tenants.empty());
  EXPECT_EQ(rules->others, TenantRights{});
}

}  // namespace
}  // namespace xsched::server
