# SPDX-License-Identifier: Apache-2.0
# Include this after project() and before any target is made. It compiles through ccache where ccache is installed,
# unless QUERN_NO_CCACHE is set in the environment or with -D.
#
# The cache is in ccache's own folder (~/.cache/ccache), outside the clone, and all clones share it: paths below
# QUERN_CCACHE_ROOT are made relative, and the folder that the compiler runs in does not count. On a miss, ccache
# takes the list of includes that the compiler writes (depend mode), so that no file is preprocessed twice. The
# sloppiness is what precompiled headers need; the content of a header counts, its time does not. ccache ends with an
# error where it cannot write its folder, as in a home that is read-only: the build folder then holds the cache.
if(NOT QUERN_CCACHE_ROOT)
  set(QUERN_CCACHE_ROOT ${CMAKE_SOURCE_DIR})
endif()
find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE AND NOT QUERN_NO_CCACHE AND "$ENV{QUERN_NO_CCACHE}" STREQUAL "")
  set(CMAKE_C_COMPILER_LAUNCHER env CCACHE_BASEDIR=${QUERN_CCACHE_ROOT} CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  execute_process(COMMAND ${QUERN_CCACHE} --get-config cache_dir OUTPUT_VARIABLE cache_dir
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  execute_process(COMMAND sh -c "mkdir -p \"$1\" && test -w \"$1\"" sh "${cache_dir}"
                  RESULT_VARIABLE failed ERROR_QUIET)
  if(failed)
    message(STATUS "ccache: ${CMAKE_BINARY_DIR}/ccache, since ${cache_dir} cannot be written")
    list(APPEND CMAKE_C_COMPILER_LAUNCHER CCACHE_DIR=${CMAKE_BINARY_DIR}/ccache)
  endif()
  list(APPEND CMAKE_C_COMPILER_LAUNCHER ${QUERN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()
