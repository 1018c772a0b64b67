// Queues, command buffers and encoders.
#include "commands.h"

#include <cstring>
#include <deque>

#include "scheduler/scheduler.h"

namespace lc::simulators::metal {
namespace {

enum Status : unsigned long { NotEnqueued = 0, Committed = 2, Completed = 4, Failed = 5 };
constexpr unsigned long kOpenBuffers = 64;  // per queue, as in Metal
constexpr unsigned long kInlineBytes = 4096;

struct CommandBuffer;
struct Queue : Object {
  Queue() : Object("MTLCommandQueue") {}
  void dispose() override { waiting.clear(); }
  std::deque<Hold<CommandBuffer>> waiting;  // committed buffers that have not run
};

struct CommandBuffer : Object {
  explicit CommandBuffer(Queue* q) : Object("MTLCommandBuffer"), queue(q) {}
  void dispose() override { work.clear(), queue = {}, error = {}; }
  Hold<Queue> queue;
  std::vector<std::function<std::string()>> work;  // each returns an error message or ""
  Object* open = nullptr;                          // the open encoder, which owns this buffer
  unsigned long status = NotEnqueued;
  Hold<Error> error;
};

void run(CommandBuffer& c) {
  std::string why = fails() ? "Caused GPU Timeout Error (the test wants it so)" : "";
  for (auto& w : c.work)
    if (why.empty()) why = w();
  c.work.clear();
  c.status = why.empty() ? Completed : Failed;
  if (why.empty()) return;
  auto* error = new Error(why);
  c.error = error;
  release(error);
}

// Runs the queue's buffers in order, up to and including `last`.
void run_until(Queue& q, const CommandBuffer* last) {
  while (!q.waiting.empty()) {
    const Hold<CommandBuffer> c = std::move(q.waiting.front());
    q.waiting.pop_front();
    run(*c.get());
    if (c.get() == last) return;
  }
}

Object* command_buffer(Queue* q) {
  if (fails()) return nullptr;
  if (q->waiting.size() >= kOpenBuffers) run_until(*q, q->waiting.front().get());
  return autorelease(new CommandBuffer(q));
}

void commit(CommandBuffer* c) {
  if (c->open) return fault("a command buffer is committed while an encoder is open");
  if (c->status != NotEnqueued) return fault("a command buffer is committed twice");
  ++control().commits;
  c->status = Committed;
  c->queue->waiting.emplace_back(c);
  if (!control().deferred) run_until(*c->queue.get(), c);
}

void wait(CommandBuffer* c) {
  if (c->status == NotEnqueued) return fault("waits for a command buffer that was not committed");
  if (c->status == Committed) run_until(*c->queue.get(), c);
}

// ---- encoders -----------------------------------------------------------------------------------

struct Encoder : Object {
  Encoder(const char* of, CommandBuffer* c) : Object(of), commands(c) { c->open = this; }
  void dispose() override {
    if (commands->open == this) fault("an encoder is freed before endEncoding"), commands->open = nullptr;
    commands = {};
  }
  // Returns true if the encoder is open; otherwise records a fault.
  bool ready() const { return commands->open == this || (fault("a command for an encoder that has ended"), false); }
  Hold<CommandBuffer> commands;
};

template <class T>
Object* make_encoder(CommandBuffer* c) {
  if (c->status != NotEnqueued) return fault("an encoder for a command buffer that was committed"), nullptr;
  if (c->open) return fault("a second encoder while one is open"), nullptr;
  if (fails()) return nullptr;
  return autorelease(new T(c));
}

void end(Encoder* e) {
  if (e->ready()) e->commands->open = nullptr;
}

std::string check_intact(Buffer& b) {
  if (b.intact()) return {};
  fault("a command wrote behind the end of a buffer of " + std::to_string(b.bytes) + " bytes");
  return "a write behind the end of a buffer";
}

// The argument bound to one slot.
struct Binding {
  Hold<Buffer> buffer;
  unsigned long offset = 0;
  std::vector<char> bytes;
  bool bound = false;
};

struct ComputeEncoder : Encoder {
  explicit ComputeEncoder(CommandBuffer* c) : Encoder("MTLComputeCommandEncoder", c) {}
  void dispose() override {
    Encoder::dispose();
    pipeline = {}, bindings = {};
  }
  bool has(unsigned long slot) const {
    return ready() && (slot < kBuffers || (fault("there is no such buffer index"), false));
  }
  Hold<Pipeline> pipeline;
  std::array<Binding, kBuffers> bindings;
  unsigned long shared = 0;
};

void set_buffer(ComputeEncoder* e, Buffer* b, unsigned long offset, unsigned long slot) {
  if (!e->has(slot)) return;
  if (b && b->freed) return fault("binds a freed buffer");
  if (b && offset > b->bytes) return fault("binds a buffer from behind its end on");
  e->bindings[slot] = {b, offset, {}, b != nullptr};
}

void set_bytes(ComputeEncoder* e, const char* bytes, unsigned long n, unsigned long slot) {
  if (!e->has(slot)) return;
  if (n == 0 || n > kInlineBytes) return fault("setBytes: with " + std::to_string(n) + " bytes");
  e->bindings[slot] = {{}, 0, {bytes, bytes + n}, true};
}

void set_shared(ComputeEncoder* e, unsigned long bytes, unsigned long index) {
  if (!e->ready()) return;
  if (index != 0) return fault("group memory of index " + std::to_string(index));
  if (bytes % 16) return fault("group memory of " + std::to_string(bytes) + " bytes, which is no multiple of 16");
  e->shared = bytes;
}

// One dispatch, with all arguments bound at the time of the call.
struct Dispatch {
  Hold<Pipeline> pipeline;
  std::array<Binding, kBuffers> bindings;
  Size groups, threads;
  unsigned long shared;
  std::string run();
};

std::string Dispatch::run() {
  const Function& f = *pipeline->function.get();
  void* slots[kBuffers + 1] = {};
  struct alignas(16) Block {
    char bytes[16];
  };
  std::vector<std::unique_ptr<Block[]>> inline_bytes;
  for (unsigned k = 0; k < kBuffers; ++k) {
    Binding& b = bindings[k];
    if (b.buffer) slots[k] = b.buffer->data + b.offset;
    if (b.bytes.empty()) continue;
    inline_bytes.emplace_back(new Block[b.bytes.size() / sizeof(Block) + 1]);
    slots[k] = std::memcpy(inline_bytes.back().get(), b.bytes.data(), b.bytes.size());
  }
  const auto narrow = [](Size s) {
    return LcDim3{static_cast<unsigned>(s.width), static_cast<unsigned>(s.height), static_cast<unsigned>(s.depth)};
  };
  const fibers::Grid grid{narrow(groups), narrow(threads), static_cast<unsigned>(shared), control().order};
  const LcModule module{f.program->module().scheduler, f.kernel->shared_begin, f.kernel->shared_end, &f.kernel->kernel,
                        1};
  ++control().dispatches;
  std::string why = fibers::run_grid(module, f.kernel->kernel, slots, grid).words;
  if (!why.empty()) fault("kernel " + why);
  for (const Binding& b : bindings)
    if (b.buffer && why.empty()) why = check_intact(*b.buffer.get());
  return why;
}

bool complete(const ComputeEncoder& e) {
  const LcKernel& k = e.pipeline->function->kernel->kernel;
  for (unsigned i = 0; i < k.arguments; ++i) {
    const unsigned slot = k.sizes[i];
    const std::string which = "of " + std::string(k.name) + ": buffer " + std::to_string(slot);
    if (slot == kBuffers) {
      if (!e.shared) return fault("a dispatch " + which + " is group memory, and it has none"), false;
    } else if (!e.bindings[slot].bound) {
      return fault("a dispatch " + which + " is not bound"), false;
    } else if (e.bindings[slot].offset % k.alignments[i]) {
      return fault("a dispatch " + which + " is not aligned to its type"), false;
    }
  }
  return true;
}

void dispatch(ComputeEncoder* e, Size groups, Size threads) {
  if (!e->ready()) return;
  if (!e->pipeline) return fault("a dispatch without a pipeline");
  const Function& f = *e->pipeline->function.get();
  const unsigned long n = threads.width * threads.height * threads.depth;
  if (!groups.width || !groups.height || !groups.depth) return fault("a dispatch of no groups");
  if (!n || n > f.threads()) return fault("a dispatch of groups of " + std::to_string(n) + " threads");
  if (f.shared() + e->shared > kGroupMemory) return fault("a dispatch with too much group memory");
  if (!complete(*e)) return;
  auto d = std::make_shared<Dispatch>(Dispatch{e->pipeline, e->bindings, groups, threads, e->shared});
  e->commands->work.push_back([d] { return d->run(); });
}

// ---- blits --------------------------------------------------------------------------------------

struct BlitEncoder : Encoder {
  explicit BlitEncoder(CommandBuffer* c) : Encoder("MTLBlitCommandEncoder", c) {}
};

bool in_range(const Buffer* b, unsigned long offset, unsigned long n) {
  if (!b) return fault("a blit without a buffer"), false;
  if (n == 0) return fault("a blit of no bytes"), false;
  if (offset % 4 || n % 4) return fault("a blit that does not begin and end at multiples of 4"), false;
  if (offset > b->bytes || n > b->bytes - offset) return fault("a blit beyond the end of a buffer"), false;
  return true;
}

void copy(BlitEncoder* e, Buffer* from, unsigned long from_offset, Buffer* to, unsigned long to_offset,
          unsigned long n) {
  if (!e->ready() || !in_range(from, from_offset, n) || !in_range(to, to_offset, n)) return;
  if (from == to && from_offset < to_offset + n && to_offset < from_offset + n)
    return fault("a blit between ranges that overlap");
  e->commands->work.push_back([=, from = Hold(from), to = Hold(to)] {
    std::memcpy(to->data + to_offset, from->data + from_offset, n);
    ++control().blits;
    return std::string();
  });
}

void fill(BlitEncoder* e, Buffer* b, Range r, unsigned char value) {
  if (!e->ready() || !in_range(b, r.location, r.length)) return;
  e->commands->work.push_back([=, b = Hold(b)] {
    std::memset(b->data + r.location, value, r.length);
    ++control().blits;
    return std::string();
  });
}

}  // namespace

Object* make_queue() { return new Queue; }

void install_commands() {
  method<&command_buffer>("MTLCommandQueue", "commandBuffer");
  method<&commit>("MTLCommandBuffer", "commit");
  method<&wait>("MTLCommandBuffer", "waitUntilCompleted");
  method<[](CommandBuffer* self) { return self->status; }>("MTLCommandBuffer", "status");
  method<[](CommandBuffer* self) -> Object* { return self->error.get(); }>("MTLCommandBuffer", "error");
  method<&make_encoder<ComputeEncoder>>("MTLCommandBuffer", "computeCommandEncoder");
  method<&make_encoder<BlitEncoder>>("MTLCommandBuffer", "blitCommandEncoder");
  method<&end>("MTLComputeCommandEncoder", "endEncoding");
  method<&end>("MTLBlitCommandEncoder", "endEncoding");
  method<[](ComputeEncoder* self, Pipeline* p) {
    if (!p) fault("a pipeline is set that is nil");
    else if (self->ready()) self->pipeline = p;
  }>("MTLComputeCommandEncoder", "setComputePipelineState:");
  method<&set_buffer>("MTLComputeCommandEncoder", "setBuffer:offset:atIndex:");
  method<&set_bytes>("MTLComputeCommandEncoder", "setBytes:length:atIndex:");
  method<&set_shared>("MTLComputeCommandEncoder", "setThreadgroupMemoryLength:atIndex:");
  method<&dispatch>("MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:");
  method<&copy>("MTLBlitCommandEncoder", "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:");
  method<&fill>("MTLBlitCommandEncoder", "fillBuffer:range:value:");
}

}  // namespace lc::simulators::metal
