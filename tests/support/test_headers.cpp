// Exists for its precompiled header, which all tests use (tests/CMakeLists.txt).
int main() {}
