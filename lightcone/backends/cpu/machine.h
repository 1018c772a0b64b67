// The machine profile that this process compiles for, and where profiles are stored.
#pragma once

#include <string>

#include "lightcone/codegen/machine.h"

namespace lc::backends::cpu {

// Identifies the processor of a stored profile: vendor, family, model and stepping (Arm: the MIDR register) as one
// word.
std::string processor();
// The profile derived from the processor's family and the cache sizes that the system reports, without measuring.
Machine default_machine();
// The profile of this process: the file named by $LIGHTCONE_MACHINE ("default" means default_machine()), else the
// profile stored for this processor, else default_machine(). Throws Error if the named file is not a profile. It is
// read once per process.
const Machine& this_machine();

// Stores the profile in the kernel cache directory ($LIGHTCONE_CACHE) for later processes. Returns false on failure.
bool keep_profile(const Machine& m);
// Returns whether measuring is unnecessary: a profile is stored for this processor, $LIGHTCONE_MACHINE names one, or
// there is no cache to store one in.
bool profile_is_kept();

}  // namespace lc::backends::cpu
