#include "graph.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "context.h"
#include "driver.h"
#include "kernels.h"
#include "memory.h"
#include "stream.h"

namespace standin {
namespace {

struct GraphExec {
  std::vector<Step> steps;
  size_t nodes = 0;
  CommandPtr last_launch;  // an executable graph does not run beside itself
};

std::unordered_map<CUgraph, std::shared_ptr<Graph>>& Graphs() {
  static auto* const graphs = new std::unordered_map<CUgraph, std::shared_ptr<Graph>>;
  return *graphs;
}
std::unordered_map<CUgraphExec, std::shared_ptr<GraphExec>>& GraphExecs() {
  static auto* const execs = new std::unordered_map<CUgraphExec, std::shared_ptr<GraphExec>>;
  return *execs;
}

// All steps, in an order that respects the dependencies. Independent steps stay in the order of their
// creation.
std::vector<Step> Flatten(const Graph& graph) {
  std::vector<Step> steps;
  std::set<const Node*> placed;
  while (placed.size() < graph.nodes.size()) {
    const size_t before = placed.size();
    for (const auto& node : graph.nodes) {
      if (placed.count(node.get())) continue;
      const auto& needs = node->dependencies;
      if (!std::all_of(needs.begin(), needs.end(), [&](const Node* n) { return placed.count(n) > 0; }))
        continue;
      steps.insert(steps.end(), node->steps.begin(), node->steps.end());
      placed.insert(node.get());
    }
    if (placed.size() == before) break;  // a cycle
  }
  return steps;
}

CUresult Instantiate(CUgraphExec* out, CUgraph handle) {
  Lock lock;
  const std::shared_ptr<Graph> graph = FindGraph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto exec = std::make_shared<GraphExec>(GraphExec{Flatten(*graph), graph->nodes.size(), nullptr});
  *out = reinterpret_cast<CUgraphExec>(exec.get());
  GraphExecs()[*out] = exec;
  return CUDA_SUCCESS;
}

CUresult Add(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
             CUgraphNodeType type, std::vector<Step> steps) {
  const std::shared_ptr<Graph> graph = FindGraph(handle);
  if (out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> needs;
  for (size_t i = 0; i < count; ++i) needs.push_back(reinterpret_cast<Node*>(dependencies[i]));
  *out = reinterpret_cast<CUgraphNode>(AddNode(*graph, type, std::move(steps), std::move(needs)));
  return CUDA_SUCCESS;
}

}  // namespace

Node* AddNode(Graph& graph, CUgraphNodeType type, std::vector<Step> steps, std::vector<Node*> dependencies) {
  graph.nodes.push_back(
      std::make_unique<Node>(Node{&graph, type, std::move(steps), std::move(dependencies)}));
  return graph.nodes.back().get();
}

bool DependsOn(const Node* later, const Node* earlier) {
  std::set<const Node*> seen;
  std::vector<const Node*> open{later};
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (node == earlier) return true;
    if (seen.insert(node).second)
      open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  return false;
}

CUgraph Publish(std::shared_ptr<Graph> graph) {
  const CUgraph handle = HandleOf(graph);
  Graphs()[handle] = std::move(graph);
  return handle;
}

std::shared_ptr<Graph> FindGraph(CUgraph handle) {
  const auto found = Graphs().find(handle);
  return found == Graphs().end() ? nullptr : found->second;
}

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  Lock lock;
  if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *out = Publish(std::make_shared<Graph>());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  Lock lock;
  return Graphs().erase(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphClone(CUgraph* out, CUgraph original) {
  Lock lock;
  const std::shared_ptr<Graph> from = FindGraph(original);
  if (out == nullptr || from == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto to = std::make_shared<Graph>();
  std::unordered_map<const Node*, Node*> twin;
  for (const auto& node : from->nodes) twin[node.get()] = AddNode(*to, node->type, node->steps, {});
  for (const auto& node : from->nodes) {
    for (const Node* need : node->dependencies) twin[node.get()]->dependencies.push_back(twin[need]);
  }
  *out = Publish(std::move(to));
  return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  Lock lock;
  const std::shared_ptr<Graph> graph = FindGraph(handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes == nullptr) {
    *count = graph->nodes.size();
    return CUDA_SUCCESS;
  }
  *count = std::min(*count, graph->nodes.size());
  for (size_t i = 0; i < *count; ++i) nodes[i] = reinterpret_cast<CUgraphNode>(graph->nodes[i].get());
  return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  Lock lock;
  *type = reinterpret_cast<Node*>(node)->type;
  return CUDA_SUCCESS;
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  Lock lock;
  return Add(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_EMPTY, {});
}

CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* parameters) {
  Lock lock;
  const CUDA_HOST_NODE_PARAMS host = *parameters;
  return Add(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_HOST,
             {{Step::Kind::kHost, [host] { host.fn(host.userData); }}});
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  Lock lock;
  Context* context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  Step step;
  const CUfunction function =
      parameters->func ? parameters->func : reinterpret_cast<CUfunction>(parameters->kern);
  if (const CUresult error =
          MakeKernelStep(*context, function, parameters->kernelParams, parameters->extra, &step)) {
    return error;
  }
  return Add(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_KERNEL, {step});
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS_v1* v1) {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = v1->func;
  parameters.kernelParams = v1->kernelParams;
  parameters.extra = v1->extra;
  return standin::cuGraphAddKernelNode_v2(out, graph, dependencies, count, &parameters);
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child) {
  Lock lock;
  const std::shared_ptr<Graph> inner = FindGraph(child);
  if (inner == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Add(out, graph, dependencies, count, CU_GRAPH_NODE_TYPE_GRAPH, Flatten(*inner));
}

CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  Lock lock;
  for (size_t i = 0; i < count; ++i) {
    reinterpret_cast<Node*>(to[i])->dependencies.push_back(reinterpret_cast<Node*>(from[i]));
  }
  return CUDA_SUCCESS;
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return standin::cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  return Instantiate(out, graph);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters != nullptr) parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return Instantiate(out, graph);
}
CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return Instantiate(out, graph);
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return Instantiate(out, graph);
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  Lock lock;
  const auto found = GraphExecs().find(handle);
  const std::shared_ptr<Graph> graph = FindGraph(graph_handle);
  if (found == GraphExecs().end() || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool same_shape = graph->nodes.size() == found->second->nodes;
  if (info != nullptr) {
    *info = {};
    info->result = same_shape ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  if (!same_shape) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  found->second->steps = Flatten(*graph);
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Lock lock;
  return GraphExecs().erase(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream) {
  Lock lock;
  if (GraphExecs().count(handle) == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto resolved = ResolveStream(stream);
  return resolved.error ? resolved.error : Submit(lock, *resolved.stream, {CU_GRAPH_NODE_TYPE_EMPTY, {}});
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  Lock lock;
  const auto found = GraphExecs().find(handle);
  if (found == GraphExecs().end()) return CUDA_ERROR_INVALID_VALUE;
  const auto [stream, error] = ResolveStream(stream_handle);
  if (error) return error;
  const auto exec = found->second;  // may be destroyed while this call waits for room
  Work work{CU_GRAPH_NODE_TYPE_GRAPH, exec->steps};
  if (exec->last_launch != nullptr) work.after.push_back(exec->last_launch);
  CommandPtr command;
  const CUresult result = Submit(lock, *stream, std::move(work), &command);
  if (command != nullptr) exec->last_launch = command;
  return result;
}

}  // namespace standin
