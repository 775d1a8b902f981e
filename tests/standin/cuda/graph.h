// Graphs: nodes, their order, and launching them as one command.
#pragma once

#include <memory>
#include <vector>

#include "cuda_api.h"
#include "device.h"

namespace standin {

struct Graph;

struct Node {
  Graph* graph;
  CUgraphNodeType type;
  std::vector<Step> steps;
  std::vector<Node*> dependencies;
};

struct Graph {
  std::vector<std::unique_ptr<Node>> nodes;
};

Node* AddNode(Graph& graph, CUgraphNodeType type, std::vector<Step> steps, std::vector<Node*> dependencies);
bool DependsOn(const Node* later, const Node* earlier);  // directly, indirectly, or by being it
// Hands the graph to the program.
CUgraph Publish(std::shared_ptr<Graph> graph);
inline CUgraph HandleOf(const std::shared_ptr<Graph>& graph) {
  return reinterpret_cast<CUgraph>(graph.get());
}
std::shared_ptr<Graph> FindGraph(CUgraph handle);

}  // namespace standin
