# SPDX-License-Identifier: Apache-2.0
# Finds Arrow C++ for the command line and its tests (the library itself links none of it): a package of the system if
# CMake finds one, otherwise the headers and libraries inside the pyarrow wheel of QUERN_VENV, which tools/setup makes.
#
#     list(APPEND CMAKE_MODULE_PATH ${CMAKE_SOURCE_DIR}/tools/cmake)
#     find_package(PyArrow)    # PyArrow_FOUND, PyArrow_VERSION, PyArrow_ORIGIN (for messages)
#     target_link_libraries(... QuernArrow::arrow QuernArrow::parquet QuernArrow::compute)
#
# Debian 12 has no Arrow package. The libraries of a wheel change their names with every release: a program that links
# them runs only where it was built.
set(QUERN_VENV "${CMAKE_SOURCE_DIR}/build/venv" CACHE PATH "Python environment made by tools/setup")

# Before Arrow 21 compute was part of the arrow library.
function(_quern_arrow_from_system)
  add_library(QuernArrow::arrow INTERFACE IMPORTED GLOBAL)
  target_link_libraries(QuernArrow::arrow INTERFACE Arrow::arrow_shared)
  add_library(QuernArrow::parquet INTERFACE IMPORTED GLOBAL)
  target_link_libraries(QuernArrow::parquet INTERFACE Parquet::parquet_shared Arrow::arrow_shared)
  add_library(QuernArrow::compute INTERFACE IMPORTED GLOBAL)
  if(TARGET ArrowCompute::arrow_compute_shared)
    target_link_libraries(QuernArrow::compute INTERFACE ArrowCompute::arrow_compute_shared)
  else()
    target_link_libraries(QuernArrow::compute INTERFACE Arrow::arrow_shared)
  endif()
endfunction()

function(_quern_arrow_from_wheel dir so_version)
  foreach(name IN ITEMS arrow arrow_compute parquet)
    string(REPLACE "arrow_" "" target ${name})
    add_library(QuernArrow::${target} SHARED IMPORTED GLOBAL)
    set_target_properties(QuernArrow::${target} PROPERTIES
      IMPORTED_LOCATION ${dir}/lib${name}.so.${so_version}
      INTERFACE_INCLUDE_DIRECTORIES ${dir}/include)
  endforeach()
  target_link_libraries(QuernArrow::compute INTERFACE QuernArrow::arrow)
  target_link_libraries(QuernArrow::parquet INTERFACE QuernArrow::arrow)
endfunction()

# Sets dir, version and so_version in the caller where the environment has a pyarrow with headers.
function(_quern_ask_python)
  set(python ${QUERN_VENV}/bin/python)
  if(NOT EXISTS ${python})
    return()
  endif()
  execute_process(
    COMMAND ${python} -c
      "import pyarrow as p; i = p.cpp_build_info; print(p.get_library_dirs()[0], i.version, i.so_version, sep=';')"
    OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    return()
  endif()
  list(GET answer 0 dir)
  list(GET answer 1 version)
  list(GET answer 2 so_version)
  if(EXISTS ${dir}/libparquet.so.${so_version} AND EXISTS ${dir}/include/arrow/api.h)
    set(dir ${dir} PARENT_SCOPE)
    set(version ${version} PARENT_SCOPE)
    set(so_version ${so_version} PARENT_SCOPE)
  endif()
endfunction()

# The same where the wheel is for another architecture, whose Python cannot be asked: from names and headers of its
# folder, QUERN_CROSS_PYARROW, which the toolchain file sets.
function(_quern_read_wheel)
  file(GLOB library ${QUERN_CROSS_PYARROW}/libarrow.so.*)
  if(NOT library MATCHES "\\.so\\.([0-9]+)$" OR NOT EXISTS ${QUERN_CROSS_PYARROW}/include/arrow/api.h)
    return()
  endif()
  set(so_version ${CMAKE_MATCH_1} PARENT_SCOPE)
  file(STRINGS ${QUERN_CROSS_PYARROW}/include/arrow/util/config.h line REGEX "ARROW_VERSION_STRING")
  string(REGEX MATCH "[0-9]+[.][0-9.]*[0-9]" version "${line}")
  set(version ${version} PARENT_SCOPE)
  set(dir ${QUERN_CROSS_PYARROW} PARENT_SCOPE)
endfunction()

if(NOT TARGET QuernArrow::arrow)
  find_package(Arrow QUIET CONFIG)
  find_package(Parquet QUIET CONFIG)
  find_package(ArrowCompute QUIET CONFIG)
  if(TARGET Arrow::arrow_shared AND TARGET Parquet::parquet_shared)
    _quern_arrow_from_system()
    set(PyArrow_VERSION ${Arrow_VERSION})
    set(PyArrow_ORIGIN ${Arrow_DIR})
  else()
    unset(dir)
    if(CMAKE_CROSSCOMPILING)
      _quern_read_wheel()
    else()
      _quern_ask_python()
    endif()
    if(dir)
      _quern_arrow_from_wheel(${dir} ${so_version})
      set(PyArrow_VERSION ${version})
      set(PyArrow_ORIGIN ${dir})
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PyArrow
  REQUIRED_VARS PyArrow_ORIGIN VERSION_VAR PyArrow_VERSION
  REASON_FAILURE_MESSAGE "no Arrow C++ package and no pyarrow in ${QUERN_VENV}: run tools/setup")
