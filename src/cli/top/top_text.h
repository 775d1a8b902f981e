// The lines of top, as they are on the screen, in batch mode, and in sentences. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/top/history.h"
#include "cli/top/rates.h"
#include "cli/top/recent.h"

namespace xsched::cli {

// Columns of a terminal. More than any terminal has: nothing is left out.
inline constexpr int kAnyWidth = 1 << 16;

struct TopStyle {
  int width = kAnyWidth;
  bool ascii = false;     // the terminal has no Unicode
  bool is_admin = false;  // shown are the priorities that count
};

std::string TopSummary(const ipc::Status& status, const TopStyle& style = {});

// "GPU 0 [||||    ]  40 % ▁▂▃"
std::string DeviceLine(const std::string& name, double share, const History& history, const TopStyle& style);

// Who waited for whom since the last look, the longest first: as many lines as `most`.
std::vector<std::string> WaitLines(const Recent& recent, size_t most, const TopStyle& style);

// One line for each process, the one with the most device time since the last look first, under a heading.
std::vector<std::string> ProcessLines(const std::vector<AccountRates>& accounts, const TopStyle& style);

// "tenants: lab 62.0%, user bob 8.1%": the share of device time since the last look, the largest first. Where
// each user is a tenant, "users: ann 62.0%, bob 8.1%", or nothing if there is one user.
std::string SumsLine(const std::vector<AccountRates>& accounts, const std::vector<TenantRates>& tenants,
                     const TopStyle& style);

// The queues: as many columns as there is room for.
std::string TopHeading(const TopStyle& style = {});
std::string TopRow(const QueueRates& entry, const Recent::Requests& requests, const TopStyle& style = {});

// All of it in sentences, for screen readers.
std::vector<std::string> TopSentences(const ipc::Status& status, const std::vector<QueueRates>& queues,
                                      const std::vector<AccountRates>& accounts,
                                      const std::vector<TenantRates>& tenants, const Recent& recent);

}  // namespace xsched::cli
