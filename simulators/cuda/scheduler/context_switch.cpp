#include "scheduler/context_switch.h"

#include <ucontext.h>

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)

// fake_cuda_switch saves the callee-saved registers on the stack it leaves; fake_cuda_continue restores them from the
// other stack.
extern "C" {
void fake_cuda_switch(void** from, void* to) __attribute__((visibility("hidden")));
void fake_cuda_continue() __attribute__((visibility("hidden")));
}
__asm__(R"(
.text
.hidden fake_cuda_switch
.hidden fake_cuda_continue
.globl fake_cuda_switch
.globl fake_cuda_continue
.type fake_cuda_switch, @function
.type fake_cuda_continue, @function
fake_cuda_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
fake_cuda_continue:
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size fake_cuda_switch, .-fake_cuda_switch
)");

namespace fibers {

Suspended new_context(char* stack, std::size_t bytes, void (*entry)()) {
  // six registers, the resume address, and the return address that a function expects on an aligned stack
  auto** top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t(63));
  void** frame = top - 8;
  std::memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(entry);
  return frame;
}

void switch_context(Suspended* from, Suspended to) { fake_cuda_switch(from, to); }

bool switch_after_signal(void* signal_context, Suspended to) {
  auto& registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs;
  registers[REG_RIP] = reinterpret_cast<greg_t>(&fake_cuda_continue);
  registers[REG_RSI] = reinterpret_cast<greg_t>(to);
  return true;
}

}  // namespace fibers

#elif defined(__aarch64__)

extern "C" {
void fake_cuda_switch(void** from, void* to) __attribute__((visibility("hidden")));
void fake_cuda_continue() __attribute__((visibility("hidden")));
}
__asm__(R"(
.text
.hidden fake_cuda_switch
.hidden fake_cuda_continue
.globl fake_cuda_switch
.globl fake_cuda_continue
.type fake_cuda_switch, %function
.type fake_cuda_continue, %function
fake_cuda_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
fake_cuda_continue:
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size fake_cuda_switch, .-fake_cuda_switch
)");

namespace fibers {

Suspended new_context(char* stack, std::size_t bytes, void (*entry)()) {
  auto** top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t(63));
  void** frame = top - 20;
  std::memset(frame, 0, 20 * sizeof(void*));
  frame[11] = reinterpret_cast<void*>(entry);  // x30
  return frame;
}

void switch_context(Suspended* from, Suspended to) { fake_cuda_switch(from, to); }

bool switch_after_signal(void* signal_context, Suspended to) {
  auto& registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext;
  registers.pc = reinterpret_cast<std::uintptr_t>(&fake_cuda_continue);
  registers.regs[1] = reinterpret_cast<std::uintptr_t>(to);
  return true;
}

}  // namespace fibers

#else

#include <new>

namespace fibers {

// A new context is stored at the low end of its stack; a suspended one on the stack it runs on.
Suspended new_context(char* stack, std::size_t bytes, void (*entry)()) {
  auto* context = new (stack) ucontext_t();
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof(ucontext_t);
  context->uc_stack.ss_size = bytes - sizeof(ucontext_t);
  makecontext(context, entry, 0);
  return context;
}

void switch_context(Suspended* from, Suspended to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

bool switch_after_signal(void*, Suspended) { return false; }

}  // namespace fibers

#endif
