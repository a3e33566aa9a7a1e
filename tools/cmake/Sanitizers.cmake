# SPDX-License-Identifier: Apache-2.0
# Include before any target is made. QUERN_SANITIZE: empty, or the value of -fsanitize for everything that runs natively
# (templates that become bitcode are compiled by commands of their own and stay as they are).
#
# Two checks of "undefined" are left out: `vptr` needs type information that LLVM may be built without, and `function`
# reads a signature before the called function, which generated code does not have.
set(QUERN_SANITIZE "" CACHE STRING "Sanitizers: empty, 'address,undefined' or 'thread'")
if(QUERN_SANITIZE)
  set(_flags -fsanitize=${QUERN_SANITIZE} -fno-omit-frame-pointer)
  if(QUERN_SANITIZE MATCHES "undefined")
    list(APPEND _flags -fno-sanitize=vptr -fno-sanitize-recover=all)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      list(APPEND _flags -fno-sanitize=function)
    endif()
  endif()
  add_compile_options(${_flags})
  add_link_options(${_flags})
  unset(_flags)
endif()
