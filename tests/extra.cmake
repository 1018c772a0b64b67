# Tests that are not GoogleTest programs.
add_test(NAME compile_fail COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
add_test(NAME compile_time COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compile_time/check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
set_tests_properties(compile_time PROPERTIES RUN_SERIAL ON)
# Another project finds the installed library and uses it.
if(NOT LIGHTCONE_SANITIZE)
  add_test(NAME consumer COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/consumer/check.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${LIGHTCONE_SANITIZE})
endif()
# The seeds print the right matrices.
add_test(NAME seed_2023_output COMMAND seed_2023)
set_tests_properties(seed_2023_output PROPERTIES PASS_REGULAR_EXPRESSION "^1 2 3 3 2 4 6 6 3 6 9 9 \n$")
add_test(NAME seed_2024_output COMMAND seed_2024)
set_tests_properties(seed_2024_output PROPERTIES PASS_REGULAR_EXPRESSION "\\[\\[ 1,  2,  3,  4\\],\n \\[ 2,  4,  6,  8\\],\n \\[ 3,  6,  9, 12\\]\\]")
add_test(NAME layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py)
add_test(NAME line_budget COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/line_budget.py)
add_test(NAME command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR} ${LIGHTCONE_DATA})
