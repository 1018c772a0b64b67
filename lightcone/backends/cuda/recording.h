// A recording of a CUDA device. Launches that are run repeatedly become graphs of the driver, each started by one call.
// If buffers or sizes change, they are written into the existing graph. A launch that a graph cannot hold runs between
// two graphs.
#pragma once

#include <vector>

#include "lightcone/backends/cuda/trace.h"

namespace lc::backends::cuda {

class GraphRecording final : public Recording {
 public:
  // Throws Error for a kernel that is not for this device.
  GraphRecording(CudaDevice& device, std::span<const Launch> launches);
  ~GraphRecording() override;
  void update() override { stale_ = true; }
  void run(std::size_t first, std::size_t last) override;

 private:
  // Launches [first, last) as one graph, or one launch that runs by itself.
  struct Segment {
    std::size_t first = 0, last = 0;
    bool alone = false;
    api::Graph* graph = nullptr;
    api::GraphExec* exec = nullptr;
    std::vector<api::GraphNode*> nodes;  // by step from its first on; null for steps that launch no kernel
  };

  void each(std::size_t first, std::size_t last);
  bool trace_all(Trace& to);
  void capture();
  void capture(Segment& s);
  bool follow(const Trace& next);
  bool same_steps(const Trace& next) const;
  void set_nodes(Segment& s, const Trace& next);
  void replay();
  void drop() noexcept;

  CudaDevice& device_;
  const std::shared_ptr<Stream> stream_;
  std::span<const Launch> launches_;
  std::vector<bool> alone_;  // by launch: it does things that a graph cannot hold
  std::vector<Segment> segments_;
  Trace now_, next_;  // the steps in the graphs; the steps of the next run
  bool captured_ = false, stale_ = true, ran_ = false;
};

}  // namespace lc::backends::cuda
