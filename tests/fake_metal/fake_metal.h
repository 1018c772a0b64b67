// A Metal for systems that have none: a library with Objective-C's run time and the classes that a back end for
// computing uses. It is strict where Metal is undefined, runs kernels on the CPU, and does what tests ask for here.
#pragma once

extern "C" {

// What a test sets and sees; fake_metal_control() gives the library's one. Nothing may run when it is touched.
struct FakeMetal {
  // Settings.
  bool deferred;               // work begins when somebody waits for it, and not when it is committed
  long order;                  // of threads and groups: 0 forward, 1 reverse, any other number shuffles by it
  bool separate_memory;        // a GPU with memory of its own
  bool old_system;             // before macOS 15: some selectors are not there yet
  int devices;                 // 1 unless said
  unsigned long memory;        // bytes of all buffers together; 0: no bound
  unsigned long fail_at;       // the call that fails, of those that can, counted from 1; 0: none
  unsigned long thread_width;  // threadExecutionWidth; 32 unless said

  // Counted since the start.
  unsigned long calls;              // that could have failed
  long objects;                     // alive now
  unsigned long commits;            // command buffers
  unsigned long dispatches, blits;  // run
  unsigned long compiles;           // of texts that were not seen before
};

FakeMetal* fake_metal_control();
// What was done that Metal does not allow, a line each, since the last time that this was asked; "" when nothing was.
// Good until it is asked again.
const char* fake_metal_faults();
}
