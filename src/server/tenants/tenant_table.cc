#include "server/tenants/tenant_table.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/queues.h"
#include "server/usage_meter.h"

namespace xsched::server {
namespace {

constexpr uint16_t kCountsMemory = 9;  // agents of this minor of the protocol and of later ones

}  // namespace

Tenant& TenantTable::Of(const Peer& peer, const ProcessIdentity& process) {
  Peer owner = peer;
  owner.uid = subordinates_.OwnerOf(peer.uid);
  if (const TenantRule* rule = rules_.Find(owner, process))
    return Named(rule->TenantOf(owner, process), rule->name, rule->rights);
  return Named(fmt::format("{}{}", kUserTenantPrefix, owner.uid), kFurtherUsersTenant, rules_.others);
}

Tenant& TenantTable::Of(Connection& client) {
  if (!client.identity) client.identity = IdentityOfPeer(client.socket.get(), client.peer.pid);
  return Of(client.peer, *client.identity);
}

// `common`: the tenant in its place if there are too many.
Tenant& TenantTable::Named(const std::string& name, const std::string& common, const TenantRights& rights) {
  const auto known = tenants_.find(name);
  if (known != tenants_.end()) return known->second;
  if (name != common && told_apart_[common] >= kMaxTenants) return Named(common, common, rights);
  Tenant tenant;
  tenant.id = sched::TenantId{next_id_++};
  tenant.name = name;
  tenant.rights = rights;
  const bool is_told_apart = name != common;
  if (is_told_apart && !name.starts_with(kUserTenantPrefix)) tenant.made_by = common;
  Tenant& stored = tenants_.emplace(name, std::move(tenant)).first->second;
  told_apart_[common] += is_told_apart;
  scheduler_.SetTenantShare(stored.id, rights.share);
  return stored;
}

void TenantTable::RemoveEnded(PriorityClaims& claims) {
  for (auto next = tenants_.begin(); next != tenants_.end();) {
    const auto at = next++;
    const Tenant& tenant = at->second;
    if ((tenant.made_by.empty() && !tenant.is_former) || tenant.processes != 0) continue;
    if (!tenant.made_by.empty() && --told_apart_[tenant.made_by] == 0) told_apart_.erase(tenant.made_by);
    claims.Forget(tenant);
    scheduler_.SetTenantShare(tenant.id, {});
    tenants_.erase(at);
  }
}

std::string TenantTable::Join(Agent& agent) {
  agent.claims_anything = access_.IsAdmin(agent.connection.peer);
  agent.tenant = &Of(agent.connection);
  ++agent.tenant->processes;
  scheduler_.SetTenant(agent.process(), agent.tenant->id);
  if (!rules_.LimitMemory() || agent.connection.minor < kCountsMemory || GiveMemorySlot(agent)) return {};
  ++agent.tenant->refused;
  return fmt::format(
      "the memory of this process does not count for tenant {}, and has no limit: it has no place among the "
      "tenant's processes",
      agent.tenant->name);
}

// ---- memory ----

// False: there is none. Then the process need not count.
bool TenantTable::GiveMemorySlot(Agent& agent) {
  Tenant& tenant = *agent.tenant;
  std::shared_ptr<TenantMemory> account = tenant.memory.lock();
  if (account == nullptr) {
    Result<std::shared_ptr<TenantMemory>> made = TenantMemory::Create(tenant.rights.memory);
    if (!made) {
      spdlog::error("{}: the memory of tenant {} has no limit", made.error().text(), tenant.name);
      return false;
    }
    tenant.memory = account = std::move(*made);
  }
  const std::optional<uint32_t> slot = account->TakeSlot();
  if (!slot) return false;
  agent.memory.emplace(std::move(account), *slot);
  return agent.memory_unsent = true;
}

// A process that never had a slot does not count, and cannot begin with it: what it has is not known.
void TenantTable::MoveMemory(Agent& agent) {
  if (agent.memory) {
    agent.memory->Silence();
    agent.former_memory.push_back(std::move(*agent.memory));
    agent.memory.reset();
    agent.memory_unsent = false;
  }
  if (agent.former_memory.empty()) return;
  DropEndedAccounts(agent);
  if (!TakeFormerSlot(agent) && !GiveMemorySlot(agent)) ++agent.tenant->refused;
}

// Of a tenant that it was of before, it has a slot still. Another one each time would leave the tenant none
// for others.
bool TenantTable::TakeFormerSlot(Agent& agent) {
  const std::shared_ptr<TenantMemory> account = agent.tenant->memory.lock();
  const auto found = std::find_if(agent.former_memory.begin(), agent.former_memory.end(),
                                  [&](const MemorySlot& slot) { return slot.IsIn(account); });
  if (found == agent.former_memory.end()) return false;
  found->Revive();
  agent.memory.emplace(std::move(*found));
  agent.former_memory.erase(found);
  return agent.memory_unsent = true;
}

// No process can come to an account whose tenant has ended, so that its slots need not be kept from anybody.
// The last one stays: the process may be writing there.
void TenantTable::DropEndedAccounts(Agent& agent) const {
  const auto has_ended = [&](const MemorySlot& slot) {
    return std::none_of(tenants_.begin(), tenants_.end(),
                        [&](const auto& entry) { return slot.IsIn(entry.second.memory.lock()); });
  };
  std::erase_if(agent.former_memory, has_ended);
}

void TenantTable::SetRules(TenantRules rules, Agents& agents, Queues& queues, TimePoint now) {
  rules_ = std::move(rules);
  for (auto& [name, tenant] : tenants_) {
    tenant.rights = rules_.RightsOf(name);
    tenant.is_former = !rules_.Know(name);
    if (const auto account = tenant.memory.lock()) account->SetLimit(tenant.rights.memory);
    scheduler_.SetTenantShare(tenant.id, tenant.rights.share);
    queues.claims().Reconsider(tenant);
  }
  agents.ForEach([&](Agent& agent) {
    if (agent.tenant == nullptr) return;
    Tenant& tenant = Of(agent.connection);
    if (agent.tenant == &tenant) return;
    for (auto& [index, queue] : agent.queues) queues.claims().Remove(queue);
    --agent.tenant->processes;
    agent.tenant = &tenant;
    ++tenant.processes;
    scheduler_.SetTenant(agent.process(), tenant.id);
    MoveMemory(agent);
    agents.SendUnsent(agent);
    for (auto& [index, queue] : agent.queues) {
      queues.claims().Add(queue);
      queues.claims().Apply(queue);
      if (queue.usage.of_tenant == nullptr) continue;
      // What it had so far was as one of its former tenant.
      if (const auto stats = scheduler_.Stats(queue.id, now)) UsageMeter::Settle(queue, *stats);
      queue.usage.of_tenant = &tenant.used;
    }
  });
}

}  // namespace xsched::server
