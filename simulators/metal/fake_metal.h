// A simulated Metal: a library with Objective-C's run time and the classes that a compute back end uses. It reports a
// fault where Metal's behaviour is undefined, runs kernels on the CPU, and obeys the settings below.
#pragma once

extern "C" {

// Settings and counters. fake_metal_control() returns the library's only instance, which may be accessed only while no
// work runs.
struct FakeMetal {
  // settings
  bool deferred;          // work runs when something waits for it, not when it is committed
  long order;             // order of threads and groups: 0 forward, 1 reverse, other numbers are seeds of a shuffle
  bool separate_memory;   // simulates a GPU with memory of its own
  bool old_system;        // before macOS 15: some selectors are missing
  int devices;            // default 1
  unsigned long memory;   // limit for all buffers together in bytes; 0: none
  unsigned long fail_at;  // the number of the fallible call that fails, counted from 1; 0: none
  unsigned long thread_width;  // threadExecutionWidth; default 32

  // counters since the start
  unsigned long calls;              // fallible calls
  long objects;                     // live objects
  unsigned long commits;            // committed command buffers
  unsigned long dispatches, blits;  // executed
  unsigned long compiles;           // compilations of new texts
};

FakeMetal* fake_metal_control();
// Returns the violations of Metal's rules since the previous call, one per line, or "". The result is valid until the
// next call.
const char* fake_metal_faults();
}
