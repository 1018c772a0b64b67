#include <cstdio>

#include <lightcone/base/error.h>
#include <lightcone/models/llama/llama.h>

int main() {
  try {
    lc::Llama::load("/nowhere/model.gguf");
  } catch (const lc::Error& e) {
    std::puts(e.what());
    return 0;
  }
  return 1;
}
