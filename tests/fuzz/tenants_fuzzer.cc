// A libFuzzer target for the tenants' file, and for what the kernel says of a process's control groups, which
// users name: text of one, a zero, text of the other.
#include <cstdlib>

#include "fuzz/bytes.h"
#include "server/tenants/tenants_file.h"

using namespace xsched;
using namespace xsched::server;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Bytes bytes({data, size});
  Result<TenantRules> rules = ParseTenantRules(bytes.Until('\0'), "tenants.toml");
  if (!rules) {
    // The message names the file, and says something of it.
    if (std::string_view(rules.error().text()).size() <= sizeof "tenants.toml:") abort();
    return 0;
  }
  const ProcessIdentity process = IdentityIn(bytes.Rest());
  for (const Peer& peer : {Peer{1, 0, {}}, Peer{2, 1000, {100, 65534}}}) {
    const TenantRule* rule = rules->Find(peer, process);
    if (rule == nullptr) continue;
    const std::string tenant = rule->TenantOf(peer, process);
    // Its name can be shown, and has the rights of the rule.
    if (tenant.size() > kMaxTenantName || &rules->RightsOf(tenant) != &rule->rights) abort();
  }
  return 0;
}
