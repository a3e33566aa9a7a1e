# SPDX-License-Identifier: Apache-2.0
# Toolchain for AArch64 Linux, on a machine of another architecture: the Clang and lld of this machine, and a sysroot of
# Debian's arm64 packages, which tools/aarch64 unpacks. Programs that the build or a test starts run under qemu-user.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
cmake_path(SET _root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../build-aarch64)
set(CMAKE_SYSROOT ${_root}/sysroot)
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Programs come from this machine; libraries, headers and CMake packages from the sysroot alone.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(QUERN_CROSS_PYARROW ${_root}/wheels/pyarrow)
find_program(QUERN_QEMU_AARCH64 NAMES qemu-aarch64-static qemu-aarch64 HINTS ${_root}/qemu)
if(QUERN_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${QUERN_QEMU_AARCH64} -L ${CMAKE_SYSROOT})
endif()
