// Events: where a stream was when it recorded them.
#pragma once

#include <memory>
#include <vector>

#include "cuda_api.h"
#include "device.h"

namespace standin {

struct Capture;
struct Node;

struct Event {
  Context* context;
  unsigned flags;
  CommandPtr command;  // null: never recorded, which counts as passed
  // Recorded inside a capture: the nodes it stands for. Its capture may be over.
  std::shared_ptr<Capture> capture;
  std::vector<Node*> capture_tips;
};
using EventPtr = std::shared_ptr<Event>;

}  // namespace standin
