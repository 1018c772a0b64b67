// Metal programs, compiled by the system's C++ compiler and loaded. Compiled programs are cached.
#pragma once

#include <memory>
#include <string>

#include "shim/module.h"

namespace lc::simulators::metal {

class Program {
 public:
  // null if it fails, with a message in `error`
  static std::shared_ptr<const Program> make(const std::string& msl, std::string& error);
  ~Program();
  const LcMetalModule& module() const { return *module_; }

 private:
  Program() = default;
  void* library_ = nullptr;
  const LcMetalModule* module_ = nullptr;
};

}  // namespace lc::simulators::metal
