// What the device is asked to do: launches, copies and fills, in streams and in graphs.
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

namespace fake_cuda {

struct Function {
  std::shared_ptr<Library> library;
  const LcKernel* kernel;
  unsigned static_shared;
  unsigned max_dynamic_shared;
  int carveout = -1;
};

// Values of a kernel's arguments, copied when it is launched.
class Arguments {
 public:
  Arguments(const LcKernel& kernel, void* const* values);
  Arguments(const LcKernel& kernel, const char* packed);  // each behind the other, aligned
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
  std::shared_ptr<const std::string> taken;  // bytes of pageable memory, taken at the call
};

struct Fill {
  Address to;
  unsigned char value;
  std::size_t bytes;
};

using Node = std::variant<Launch, Copy, Fill, std::shared_ptr<const LibraryWork>>;

struct Stream;

// A point of a stream's work.
struct Mark {
  std::weak_ptr<Stream> stream;
  bool reached = false;
  double milliseconds = 0;  // when it was
};

struct Await {
  std::shared_ptr<Mark> mark;
};
struct Replay {
  std::shared_ptr<const std::vector<Node>> nodes;
};
using Operation = std::variant<Node, Replay, std::shared_ptr<Mark>, Await>;

// Streams that record instead of running, from BeginCapture to EndCapture.
struct Capture {
  Stream* origin;
  int mode;
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<char>> handles;  // as in Graph
  const void* last = nullptr;                  // what capture_info() points to
  bool broken = false;
  std::set<Stream*> unjoined;  // others that take part and that nobody has waited for
  std::set<Stream*> streams;
};

struct Stream : std::enable_shared_from_this<Stream> {
  bool blocking = true;  // waits for the default stream and is waited for by it
  std::deque<Operation> pending;
  std::shared_ptr<Capture> capture;
  std::size_t captured = 0;  // operations of it in the capture so far
};

struct Event {
  bool timing = true;
  std::shared_ptr<Mark> mark;  // the latest record's
  std::weak_ptr<Capture> capture;
  Stream* captured_in = nullptr;
  std::size_t captured_at = 0;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::unique_ptr<char>> handles;  // the address of each names a node
};

// An executable graph keeps its nodes while a launch of them is pending: an update makes new ones.
struct GraphExec {
  std::shared_ptr<const std::vector<Node>> nodes;
  std::vector<const void*> handles;  // of the graph it was made of
};

}  // namespace fake_cuda
