# Build speed (ccache, a fast linker, precompiled headers) and warnings, as functions of a target.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# ccache with settings that hit across several checkouts beside each other: paths under the parent
# of the source folder are made relative, and the working folder is no part of the key.
find_program(GSPMD_CCACHE ccache)
if(GSPMD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  get_filename_component(gspmd_ccache_base ${PROJECT_SOURCE_DIR} DIRECTORY)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${gspmd_ccache_base} CCACHE_NOHASHDIR=true
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${GSPMD_CCACHE})
endif()

find_program(GSPMD_MOLD mold)
find_program(GSPMD_LLD ld.lld)
if(GSPMD_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(GSPMD_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# The sanitizers of a preset: "address,undefined" or "thread". They must reach every target.
set(GSPMD_SANITIZE "" CACHE STRING "Comma-separated sanitizers to build with")
if(GSPMD_SANITIZE)
  add_compile_options(-fsanitize=${GSPMD_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${GSPMD_SANITIZE})
endif()

# GCC needs the macros of a precompiled header recorded in what ccache hashes.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-fpch-preprocess)
endif()

function(gspmd_warnings target)
  # Fields left out of a designated initializer are meant to have their defaults.
  # g++ 12 sees uninitialised members in copies of absl::InlinedVector where there are none.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wno-missing-field-initializers -Wno-maybe-uninitialized)
  if(GSPMD_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# Only headers of the system, by their <> names: a path of this checkout in the generated header
# would make the compiled header, and so every cached object, differ between checkouts.
function(gspmd_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstddef> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory>
    <numeric> <optional> <set> <span> <string> <string_view> <tuple> <type_traits> <unordered_map>
    <utility> <variant> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h>
    <absl/container/inlined_vector.h> <absl/strings/str_cat.h>
    <fmt/format.h> <fmt/ranges.h> ${ARGN})
endfunction()

# Messages of a .proto file: their header is `<its path>/<its name>.pb.h`, for the sources beside it.
function(gspmd_messages target file)
  set(folder ${PROJECT_BINARY_DIR}/generated)
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${folder}/${file})
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${stem}.cc ${stem}.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${folder}
            ${PROJECT_SOURCE_DIR}/${file}
    DEPENDS ${PROJECT_SOURCE_DIR}/${file} VERBATIM)
  target_sources(${target} PRIVATE ${stem}.cc ${stem}.h)
  get_filename_component(beside ${PROJECT_SOURCE_DIR}/${file} DIRECTORY)
  file(GLOB users CONFIGURE_DEPENDS ${beside}/*.cc)
  set_source_files_properties(${users} PROPERTIES INCLUDE_DIRECTORIES ${folder})
  set_source_files_properties(${stem}.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -w
                              INCLUDE_DIRECTORIES ${folder})
endfunction()
