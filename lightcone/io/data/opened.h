// Opens files for the readers of data sets.
#pragma once

#include <memory>
#include <string>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc::io {

// Returns the file, mapped or copied according to the options.
inline std::shared_ptr<const MappedFile> opened(const std::string& path, const ReadOptions& o) {
  return o.map ? MappedFile::open(path) : MappedFile::read(path);
}

// Returns a budget for reading the file. All its bytes count as parsed.
inline Budget budget_for(const MappedFile& file, const ReadOptions& o) {
  Budget budget(o, file.path());
  budget.parsed(file.bytes().size());
  return budget;
}

}  // namespace lc::io
