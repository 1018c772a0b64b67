# Builds the examples with an installed Lightcone:
#   cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
cmake_minimum_required(VERSION 3.25)
project(lightcone_examples LANGUAGES CXX)
find_package(lightcone 0.1 REQUIRED COMPONENTS io)
file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
foreach(file ${examples})
  get_filename_component(name ${file} NAME_WE)
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE lightcone::io)
endforeach()
