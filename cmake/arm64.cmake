# Builds for arm64 on another machine, against the packages that `scripts/vm root` unpacks:
# cmake --toolchain cmake/arm64.cmake -S . -B build-arm64   (scripts/deps arm64 installs the compiler)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})

# Read once more for each trial of the compiler: those get the directory from here.
if(NOT CORETAP_ROOT)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../scripts/vm root --arch arm64
    OUTPUT_VARIABLE CORETAP_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  set(CORETAP_ROOT ${CORETAP_ROOT} CACHE PATH "root directory with the libraries to build with")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CORETAP_ROOT)

set(CMAKE_SYSROOT ${CORETAP_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CORETAP_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CORETAP_ROOT}/usr/lib/${triplet}/pkgconfig:${CORETAP_ROOT}/usr/share/pkgconfig)
