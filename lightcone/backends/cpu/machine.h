// Which machine profile this process compiles for, and where profiles are kept.
#pragma once

#include <string>

#include "lightcone/codegen/machine.h"

namespace lc::backends::cpu {

// Vendor, family, model and stepping, one word: what a kept profile belongs to.
std::string processor();
// By what the processor and the system say of themselves and by its family; nothing is measured.
Machine default_machine();
// The file that $LIGHTCONE_MACHINE names ("default": default_machine()), else the profile that was kept for this
// processor, else default_machine(). An Error where the file that was named is no profile. Read once a process.
const Machine& this_machine();

// Keeps it, beside the kernels ($LIGHTCONE_CACHE), for later processes; false where that could not be done.
bool keep_profile(const Machine& m);
// Is there one for this processor, or is another one given? Also where none could be kept: nothing is to be measured.
bool profile_is_kept();

}  // namespace lc::backends::cpu
