// Of this program only the precompiled header is used, by all tests (tests/CMakeLists.txt).
int main() {}
