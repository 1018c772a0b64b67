// Programs of Metal, compiled by the system's C++ compiler and loaded. What was compiled once is found again.
#pragma once

#include <memory>
#include <string>

#include "shim/module.h"

namespace fake {

class Program {
 public:
  static std::shared_ptr<const Program> make(const std::string& msl, std::string& error);  // null, and why
  ~Program();
  const LcMetalModule& module() const { return *module_; }

 private:
  Program() = default;
  void* library_ = nullptr;
  const LcMetalModule* module_ = nullptr;
};

}  // namespace fake
