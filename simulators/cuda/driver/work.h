// Device work: launches, copies and fills, in streams and in graphs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "driver/library_work.h"
#include "driver/memory.h"
#include "nvrtc/image.h"

namespace lc::simulators::cuda {

struct Function {
  std::shared_ptr<Library> library;
  const LcKernel* kernel;
  unsigned static_shared;
  unsigned max_dynamic_shared;
  int carveout = -1;
};

// Values of a kernel's arguments, copied at its launch.
class Arguments {
 public:
  Arguments(const LcKernel& kernel, void* const* values);
  Arguments(const LcKernel& kernel, const char* packed);  // values one after the other, each aligned
  void* const* pointers() const { return pointers_.data(); }

 private:
  struct alignas(64) Chunk {
    unsigned char bytes[64];
  };
  template <class Source>
  void copy(const LcKernel& kernel, Source source);
  std::vector<Chunk> chunks_;
  std::vector<void*> pointers_;
};

struct Launch {
  std::shared_ptr<Function> function;
  LcDim3 grid, block;
  unsigned dynamic_shared;
  std::shared_ptr<const Arguments> arguments;
  bool overlaps = false;
};

struct Copy {
  char* to;
  const char* from;
  std::size_t bytes;
  bool to_device, from_device;
  std::shared_ptr<const std::string> taken;  // bytes of pageable memory, copied at the call
};

struct Fill {
  Address to;
  unsigned char value;
  std::size_t bytes;
};

using Node = std::variant<Launch, Copy, Fill, std::shared_ptr<const LibraryWork>>;

struct Stream;

// A point in a stream's work.
struct Mark {
  std::weak_ptr<Stream> stream;
  bool reached = false;
  double milliseconds = 0;  // when it was reached
};

struct Await {
  std::shared_ptr<Mark> mark;
};
struct Replay {
  std::shared_ptr<const std::vector<Node>> nodes;
};
using Operation = std::variant<Node, Replay, std::shared_ptr<Mark>, Await>;

// A capture: its streams record instead of running, from BeginCapture to EndCapture.
struct Capture {
  Stream* origin;
  int mode;
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<char>> handles;  // as in Graph
  const void* last = nullptr;                  // the value that capture_info() points to
  bool broken = false;
  std::set<Stream*> unjoined;  // other streams of the capture that nothing has waited for
  std::set<Stream*> streams;
};

struct Stream : std::enable_shared_from_this<Stream> {
  bool blocking = true;  // synchronizes with the default stream, in both directions
  std::deque<Operation> pending;
  std::shared_ptr<Capture> capture;
  std::size_t captured = 0;  // number of its operations in the capture
};

struct Event {
  bool timing = true;
  std::shared_ptr<Mark> mark;  // mark of the latest record
  std::weak_ptr<Capture> capture;
  Stream* captured_in = nullptr;
  std::size_t captured_at = 0;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<char>> handles;  // each one's address is the handle of a node
};

// An executable graph. A pending launch shares its nodes: an update creates new ones.
struct GraphExec {
  std::shared_ptr<const std::vector<Node>> nodes;
  std::vector<const void*> handles;  // nodes of the graph it was instantiated from
};

}  // namespace lc::simulators::cuda
