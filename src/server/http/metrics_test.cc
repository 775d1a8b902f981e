#include "server/http/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "base/pci_address.h"
#include "server/usage_meter.h"

namespace xsched::server::http {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uid_t kServerUser = 900;
constexpr gid_t kMetricsGroup = 77;
const Peer kAdmin{.uid = kServerUser, .is_admin = true};
const Peer kUser{0, 1000, {}};
const Peer kReader{0, 1002, {5, kMetricsGroup}};
constexpr uint64_t kDevice = MakeDevice(kDeviceTypeGPU, PciAddress(0, 0x3b, 0, 0));

ipc::Usage AccountOf(uint32_t uid, uint64_t client, int32_t priority = 0, uint64_t device = kDevice) {
  ipc::Usage account{};
  account.uid = uid;
  account.client_id = client;
  account.pid = client == 0 ? 0 : 40;
  account.priority = priority;
  account.device = device;
  account.service_ns = 1'500'000'000;
  account.held_ns = 250'000'000;
  account.running = client == 0 ? 0 : 2;
  account.requests[3] = 5;
  account.request_ns = 4'000'000;
  ipc::SetText(account.device_name, std::string_view("NVIDIA H200"));
  if (client != 0) ipc::SetText(account.name, std::string_view("serve.py"));
  return account;
}

ipc::Tenant TenantOf(const char* name, uint64_t refused) {
  ipc::Tenant tenant{};
  tenant.service_ns = 2'000'000'000;
  tenant.refused = refused;
  ipc::SetText(tenant.name, std::string_view(name));
  return tenant;
}

ipc::QueueRequests RequestsOf(uint64_t queue, uint32_t uid) {
  ipc::QueueRequests requests{};
  requests.queue_id = queue;
  requests.client_id = 1;
  requests.pid = 40;
  requests.uid = uid;
  requests.device = kDevice;
  requests.requests[3] = 5;
  requests.request_ns = 4'000'000;
  ipc::SetText(requests.name, std::string_view("serve.py"));
  return requests;
}

class MetricsPageTest : public ::testing::Test {
 protected:
  std::string PageFor(const Peer& reader, Format format = Format::kOpenMetrics) const {
    Snapshot snapshot =
        SnapshotFor(reader, Readers(access_, kMetricsGroup), status_, {accounts_, queues_, tenants_});
    snapshot.host = "box";
    return MetricsPage(snapshot, format);
  }

  AccessRules access_{kServerUser, std::nullopt};
  ipc::Status status_{};
  std::vector<ipc::Usage> accounts_ = {AccountOf(1000, 1), AccountOf(1001, 2, 5), AccountOf(1000, 0),
                                       AccountOf(1001, 0, 5)};
  std::vector<ipc::QueueRequests> queues_;
  std::vector<ipc::Tenant> tenants_ = {TenantOf("research", 3), TenantOf("uid:1000", 1)};
};

TEST_F(MetricsPageTest, has_what_each_tenant_has_had_and_what_it_was_refused) {
  const std::string page = PageFor(kReader);
  EXPECT_THAT(page,
              HasSubstr(R"(xsched_tenant_device_time_seconds_total{tenant="research",Hostname="box"} 2)"));
  EXPECT_THAT(page, HasSubstr(R"(xsched_tenant_refused_requests_total{tenant="research",Hostname="box"} 3)"));
}

TEST_F(MetricsPageTest, shows_a_user_of_the_tenants_only_the_one_that_is_this_user) {
  const std::string page = PageFor(kUser);
  EXPECT_THAT(page, HasSubstr(R"(xsched_tenant_refused_requests_total{tenant="uid:1000",Hostname="box"} 1)"));
  EXPECT_THAT(page, Not(HasSubstr("research")));
}

TEST_F(MetricsPageTest, has_what_each_user_process_and_device_has_had) {
  const std::string page = PageFor(kAdmin);
  const std::string device =
      R"(device="200003b00",pci_bus_id="00000000:3B:00.0",model_name="NVIDIA H200",Hostname="box"})";
  EXPECT_THAT(page, HasSubstr("\nxsched_device_busy_seconds_total{" + device + " 3\n")) << page;
  EXPECT_THAT(page, HasSubstr("\nxsched_device_processes{" + device + " 2\n"));
  EXPECT_THAT(page, HasSubstr("\nxsched_user_device_time_seconds_total{uid=\"1000\",priority=\"0\"," +
                              device + " 1.5\n"));
  EXPECT_THAT(
      page,
      HasSubstr(
          R"(xsched_process_device_time_seconds_total{client="1",pid="40",process="serve.py",uid="1000",)"));
  EXPECT_THAT(page, HasSubstr(R"(,reason="held"} 0.25)"));
  EXPECT_THAT(page, HasSubstr(R"(,le="0.001"} 5)"));
  EXPECT_TRUE(page.ends_with("# EOF\n"));
}

TEST_F(MetricsPageTest, has_the_memory_of_processes_with_a_limit) {
  accounts_[0].memory_used = 1024;
  accounts_[0].memory_limit = 2048;
  const std::string page = PageFor(kAdmin);
  EXPECT_THAT(page, HasSubstr("\nxsched_process_memory_bytes{client=\"1\"")) << page;
  EXPECT_THAT(page, HasSubstr("} 1024\n"));
  EXPECT_THAT(page, HasSubstr("} 2048\n"));
  EXPECT_THAT(page, ::testing::Not(HasSubstr("xsched_process_memory_bytes{client=\"2\"")));
}

TEST_F(MetricsPageTest, has_the_requests_of_each_queue_that_the_server_has_sent) {
  queues_ = {RequestsOf(7, 1000), RequestsOf(9, 1001)};
  status_.requests_without_queue = 12;
  const std::string page = PageFor(kAdmin);
  const std::string labels =
      R"({queue="7",client="1",pid="40",process="serve.py",uid="1000",device="200003b00",)";
  EXPECT_THAT(page, HasSubstr("\nxsched_queue_request_latency_seconds_bucket" + labels)) << page;
  EXPECT_THAT(page, HasSubstr("\nxsched_queue_request_latency_seconds_count" + labels));
  EXPECT_THAT(page, HasSubstr("_sum{queue=\"9\","));
  EXPECT_THAT(page, HasSubstr("\nxsched_server_requests_without_queue_total 12\n"));
}

TEST_F(MetricsPageTest, shows_a_user_no_queue_of_others) {
  queues_ = {RequestsOf(7, 1000), RequestsOf(9, 1001)};
  EXPECT_THAT(PageFor(kUser), HasSubstr("queue=\"7\""));
  EXPECT_THAT(PageFor(kUser), Not(HasSubstr("queue=\"9\"")));
}

TEST_F(MetricsPageTest, the_numbers_of_a_user_now_are_those_of_its_processes) {
  EXPECT_TRUE(std::regex_search(PageFor(kAdmin),
                                std::regex(R"(xsched_user_queues\{uid="1000",[^\n]*state="running"\} 2)")));
}

TEST_F(MetricsPageTest, queues_of_a_process_with_many_accounts_are_queues_of_its_user_and_of_devices) {
  accounts_ = {AccountOf(1000, 1, 0),
               AccountOf(1000, 1, 0, 0),
               AccountOf(1000, 2, 0, 0),
               AccountOf(1000, 0, 0),
               AccountOf(1000, 0, 1),
               AccountOf(1000, 0, 2),
               AccountOf(UsageMeter::kOtherUsers, 0, 0, 0)};
  for (size_t i : {1, 2, 6}) {
    accounts_[i].others = 1;
    accounts_[i].device_name[0] = '\0';
  }
  accounts_[2].longest_wait_ns = 2'000'000'000;
  const std::string page = PageFor(kAdmin);
  EXPECT_THAT(page, HasSubstr("\nxsched_user_longest_wait_seconds{uid=\"1000\",priority=\"other\",device="
                              "\"other\",Hostname=\"box\"} 2\n"));
  for (const char* owner : {"user", "device", "process"}) {
    const std::regex running(fmt::format(R"(xsched_{}_queues\{{[^\n]*state="running"\}} (\d+))", owner));
    int sum = 0;
    for (std::sregex_iterator line(page.begin(), page.end(), running), end; line != end; ++line)
      sum += std::stoi((*line)[1]);
    EXPECT_EQ(sum, 6) << owner;
  }
}

TEST_F(MetricsPageTest, further_priorities_of_a_user_still_count_for_their_device) {
  accounts_ = {AccountOf(1000, 1, 0), AccountOf(1000, 1, 7), AccountOf(1000, 0, 0), AccountOf(1000, 0, 0)};
  accounts_[3].others = 1;
  const std::string page = PageFor(kAdmin);
  const std::string device =
      R"(device="200003b00",pci_bus_id="00000000:3B:00.0",model_name="NVIDIA H200",Hostname="box")";
  EXPECT_THAT(page, HasSubstr("\nxsched_device_busy_seconds_total{" + device + "} 3\n"));
  EXPECT_THAT(page, HasSubstr("\nxsched_user_device_time_seconds_total{uid=\"1000\",priority=\"other\"," +
                              device + "} 1.5\n"));
  EXPECT_THAT(page, HasSubstr("\nxsched_user_queues{uid=\"1000\",priority=\"other\"," + device +
                              ",state=\"running\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("\nxsched_device_queues{" + device + ",state=\"running\"} 4\n"));
}

TEST_F(MetricsPageTest, a_user_sees_nothing_of_others_and_the_metrics_group_sees_all) {
  EXPECT_THAT(PageFor(kUser), HasSubstr("uid=\"1000\""));
  EXPECT_THAT(PageFor(kUser), Not(HasSubstr("uid=\"1001\"")));
  EXPECT_THAT(PageFor(kUser), Not(HasSubstr("xsched_device_busy_seconds_total{")));
  EXPECT_THAT(PageFor({0, 1003, {5}}), Not(HasSubstr("uid=")));
  EXPECT_EQ(PageFor(kReader), PageFor(kAdmin));
}

TEST_F(MetricsPageTest, no_series_is_there_twice_whatever_programs_call_themselves) {
  for (uint64_t client = 3; client < 6; ++client) {
    accounts_.insert(accounts_.begin(), AccountOf(1000, client));
    ipc::SetText(accounts_.front().name, std::string_view("x\",pid=\"1\"} 7\n# EOF\n"));
  }
  accounts_.push_back(AccountOf(UsageMeter::kOtherUsers, 0, 0, 0));
  accounts_.back().others = 1;
  std::istringstream lines(PageFor(kAdmin));
  std::set<std::string> series;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) {
      EXPECT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
    } else if (line == "# EOF") {
      EXPECT_FALSE(std::getline(lines, line)) << "it comes once, at the end";
    }
  }
}

TEST_F(MetricsPageTest, the_number_of_processes_on_a_page_is_limited_and_says_how_many_are_missing) {
  accounts_.clear();
  for (uint64_t client = 1; client <= Snapshot::kMaxProcessesShown + 3; ++client)
    accounts_.push_back(AccountOf(1000, client));
  accounts_.push_back(AccountOf(1000, 0));
  const std::string page = PageFor(kAdmin);
  EXPECT_THAT(page, HasSubstr("xsched_server_hidden_processes 3\n"));
  EXPECT_THAT(page, Not(HasSubstr("client=\"1026\"")));
  EXPECT_TRUE(std::regex_search(page, std::regex(R"(xsched_user_queues\{[^\n]*state="running"\} )" +
                                                 std::to_string(2 * (Snapshot::kMaxProcessesShown + 3)))))
      << "their user's numbers are whole";
}

TEST(MetricsTable, stands_in_the_document) {
  std::ifstream file(METRICS_DOCUMENT);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(MetricsTable()), std::string::npos)
      << "put this into docs/metrics.md, between the headings:\n"
      << MetricsTable();
}

}  // namespace
}  // namespace xsched::server::http
