// The pictures of tests/goldens/pictures.txt, which tools/make_picture_goldens.py makes with Pillow.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace made {

inline std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(k, 2), nullptr, 16));
  return bytes;
}

struct Picture {
  std::string file, pixels;  // pixels: red, green, blue, row by row
  std::int64_t width, height;
};
struct Resized {
  std::int64_t width, height, to_width, to_height;
  std::string before, behind;
};
struct Pictures {
  std::map<std::string, Picture> files;
  std::vector<Resized> resized;
  explicit Pictures(const std::string& source) {
    std::ifstream in(source + "/tests/goldens/pictures.txt");
    std::string line, kind, name, a, b;
    while (std::getline(in, line)) {
      std::istringstream s(line);
      s >> kind;
      if (kind == "file") {
        Picture p;
        s >> name >> a >> p.width >> p.height >> b;
        p.file = from_hex(a), p.pixels = from_hex(b);
        files[name] = p;
      } else {
        Resized r;
        s >> r.width >> r.height >> r.to_width >> r.to_height >> a >> b;
        r.before = from_hex(a), r.behind = from_hex(b);
        resized.push_back(r);
      }
    }
  }
};

}  // namespace made
