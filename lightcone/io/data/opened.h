// What every reader of data sets begins with.
#pragma once

#include <memory>
#include <string>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// The file, mapped or copied as the options have it.
inline std::shared_ptr<const MappedFile> opened(const std::string& path, const ReadOptions& o) {
  return o.map ? MappedFile::open(path) : MappedFile::read(path);
}

// An account for reading it: the values are made of all its bytes.
inline Budget budget_for(const MappedFile& file, const ReadOptions& o) {
  Budget budget(o, file.path());
  budget.parsed(file.bytes().size());
  return budget;
}

}  // namespace lc::io
