# `cmake --install`: headers, library, and the package that find_package(gspmd) reads.
include(CMakePackageConfigHelpers)

set(gspmd_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gspmd)

install(TARGETS gspmd EXPORT gspmd-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/gspmd DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(EXPORT gspmd-targets NAMESPACE gspmd:: DESTINATION ${gspmd_package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/gspmd-config.cmake.in
  ${PROJECT_BINARY_DIR}/gspmd-config.cmake INSTALL_DESTINATION ${gspmd_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gspmd-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gspmd-config.cmake
              ${PROJECT_BINARY_DIR}/gspmd-config-version.cmake
        DESTINATION ${gspmd_package_dir})
