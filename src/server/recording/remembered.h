// The answer to kRecordLast, made while it is sent: what the history has of the queues that the tool may see,
// and then what goes on, as if it ended now.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "base/clock.h"
#include "server/access.h"
#include "server/queues.h"
#include "server/recording/history.h"
#include "server/recording/queue_reader.h"
#include "server/recording/recording_outbox.h"

namespace xsched::server {

class Remembered {
 public:
  struct Parts {
    const History& history;
    const Queues& queues;
    const QueueReader& reader;
    const AccessRules& access;
  };
  // What has ended since `since`.
  Remembered(const Parts& parts, const Peer& tool, TimePoint since, TimePoint now);

  // Puts the next event, or the last message. False: this was the last one.
  bool PutNext(RecordingOutbox& outbox, TimePoint now);

 private:
  bool MaySee(uid_t uid) const { return parts_.access.MayTouch(tool_, uid); }
  void PutUnfinished(TimePoint now);
  void Put(RecordingOutbox& outbox, History::Event event, TimePoint now);
  // Puts the queue's description, once. False: it is not known, or not for the tool.
  bool Describe(RecordingOutbox& outbox, uint64_t queue, TimePoint now);

  Parts parts_;
  Peer tool_;
  TimePoint since_;
  std::vector<History::Reader> readers_;
  std::deque<History::Event> unfinished_;  // after what they read
  std::set<uint64_t> described_;
  uint32_t covered_ms_ = 0;
  uint64_t covered_from_ns_ = 0;  // since the beginning of the asked time
};

}  // namespace xsched::server
