#include "kubernetes/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "kubernetes/failed.h"
#include "kubernetes/text.h"

namespace xsched::kubernetes {
namespace {

constexpr std::string_view kSeparator = "::";
constexpr size_t kLongestEnd = 4;  // "::99"

// The numbers of the shares of each GPU.
using Shares = std::map<std::string, std::set<int>>;

Result<Shares> Grouped(const std::vector<std::string>& ids) {
  Shares shares;
  for (const std::string& id : ids) {
    const std::optional<Share> share = ReadShareId(id);
    if (!share) return Failed(fmt::format("{} is no share of a GPU", Beginning(id, kMaxDeviceId)));
    if (!shares[share->gpu].insert(share->number).second) return Failed(fmt::format("{} is named twice", id));
  }
  return shares;
}

bool IsWhole(const std::set<int>& numbers) { return numbers.size() == kSharesOfGpu; }

// "GPU-a: 30, GPU-b: 20", the first ones.
std::string TextOf(const Shares& shares) {
  constexpr size_t kMost = 8;
  std::string text;
  size_t count = 0;
  for (const auto& [gpu, numbers] : shares) {
    if (++count > kMost) return text + ", …";
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", gpu, numbers.size());
  }
  return text.empty() ? "none" : text;
}

bool HasAll(const Shares& available, const Shares& required) {
  return std::ranges::all_of(required, [&](const auto& entry) {
    const auto found = available.find(entry.first);
    return found != available.end() && std::ranges::includes(found->second, entry.second);
  });
}

// The required ones first, then those with the lowest numbers.
void Take(const std::string& gpu, const std::set<int>& available, const std::set<int>& required, size_t count,
          std::vector<std::string>& ids) {
  const size_t end = ids.size() + count;
  for (const int number : required) ids.push_back(IdOf({gpu, number}));
  for (const int number : available) {
    if (ids.size() >= end) return;
    if (!required.contains(number)) ids.push_back(IdOf({gpu, number}));
  }
}

Result<std::vector<std::string>> PartOfOneGpu(const Shares& available, const Shares& required, size_t size) {
  const auto* chosen = static_cast<const Shares::value_type*>(nullptr);
  for (const auto& entry : available) {
    if (entry.second.size() < size || (!required.empty() && entry.first != required.begin()->first)) continue;
    if (chosen == nullptr || entry.second.size() < chosen->second.size()) chosen = &entry;
  }
  if (chosen == nullptr || required.size() > 1)
    return Failed(fmt::format("no GPU of this node has {} % left ({})", size, TextOf(available)));
  std::vector<std::string> ids;
  Take(chosen->first, chosen->second, required.empty() ? std::set<int>() : required.begin()->second, size,
       ids);
  return ids;
}

Result<std::vector<std::string>> WholeGpus(const Shares& available, const Shares& required, size_t count) {
  std::vector<std::string> ids;
  std::set<std::string> chosen;
  for (const bool is_required : {true, false}) {
    for (const auto& [gpu, numbers] : available) {
      if (required.contains(gpu) != is_required || !IsWhole(numbers) || chosen.size() == count) continue;
      chosen.insert(gpu);
      Take(gpu, numbers, {}, kSharesOfGpu, ids);
    }
  }
  const bool has_required =
      std::ranges::all_of(required, [&](const auto& entry) { return chosen.contains(entry.first); });
  if (chosen.size() < count || !has_required)
    return Failed(fmt::format("{} whole GPUs are not free on this node ({})", count, TextOf(available)));
  return ids;
}

}  // namespace

std::string IdOf(const Share& share) { return fmt::format("{}{}{}", share.gpu, kSeparator, share.number); }

std::optional<Share> ReadShareId(std::string_view id) {
  const size_t at = id.rfind(kSeparator);
  if (id.size() > kMaxDeviceId || at == std::string_view::npos) return std::nullopt;
  Share share{std::string(id.substr(0, at)), -1};
  const std::string_view number = id.substr(at + kSeparator.size());
  std::from_chars(number.data(), number.data() + number.size(), share.number);
  if (share.number < 0 || share.number >= kSharesOfGpu || IdOf(share) != id) return std::nullopt;
  return ProblemOfGpuId(share.gpu).empty() ? std::optional(share) : std::nullopt;
}

std::string ProblemOfGpuId(const std::string& gpu) {
  auto may_be_in_it = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '.' || c == '_' || c == ':';
  };
  if (gpu.empty() || gpu.back() == ':' || !std::ranges::all_of(gpu, may_be_in_it))
    return fmt::format(
        "\"{}\" can name no device: it must have letters, digits, and - . _ : before the last one", gpu);
  if (gpu.size() > kMaxDeviceId - kLongestEnd)
    return fmt::format("{} can name no device: it has more than {} characters", gpu,
                       kMaxDeviceId - kLongestEnd);
  return "";
}

Result<Allocation> AllocationOf(const std::vector<std::string>& ids) {
  Result<Shares> shares = Grouped(ids);
  if (!shares) return shares.error();
  if (shares->empty()) return Failed("no share is asked for");
  Allocation allocation;
  for (const auto& [gpu, numbers] : *shares) allocation.gpus.push_back(gpu);
  allocation.percent = static_cast<int>(shares->begin()->second.size());
  const bool is_sensible = shares->size() == 1 || std::ranges::all_of(*shares, [](const auto& entry) {
                             return IsWhole(entry.second);
                           });
  if (!is_sensible) {
    return Failed(
        fmt::format("{} shares would be parts of several GPUs ({}). A container can have a part of one GPU, "
                    "up to {} shares, "
                    "or whole GPUs",
                    ids.size(), TextOf(*shares), kSharesOfGpu));
  }
  return allocation;
}

Result<std::vector<std::string>> PreferredShares(const std::vector<std::string>& available,
                                                 const std::vector<std::string>& required, int size) {
  Result<Shares> free = Grouped(available);
  Result<Shares> needed = Grouped(required);
  if (!free) return free.error();
  if (!needed) return needed.error();
  if (size < 1 || required.size() > static_cast<size_t>(size) || !HasAll(*free, *needed))
    return Failed(fmt::format("{} shares with these {} are not possible", size, required.size()));
  if (size <= kSharesOfGpu) return PartOfOneGpu(*free, *needed, static_cast<size_t>(size));
  if (size % kSharesOfGpu == 0) return WholeGpus(*free, *needed, static_cast<size_t>(size / kSharesOfGpu));
  return Failed(fmt::format("{} shares are neither a part of one GPU nor whole GPUs (a multiple of {})", size,
                            kSharesOfGpu));
}

}  // namespace xsched::kubernetes
