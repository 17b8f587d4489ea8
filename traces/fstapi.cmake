# GTKWave's fstapi, as Debian ships its source in verilator. Where it or zlib is not there, rdusim writes no .fst (RDU8019).
find_path(FSTAPI_INCLUDE gtkwave/fstapi.c PATHS /usr/share/verilator/include)
find_package(ZLIB)
# The fuzzers are built by clang++ with options that the C compiler does not know.
if(FSTAPI_INCLUDE AND ZLIB_FOUND AND NOT RDUSIM_FUZZ)
  enable_language(C)
  foreach(name fstapi fastlz lz4)
    list(APPEND FSTAPI_SOURCES ${FSTAPI_INCLUDE}/gtkwave/${name}.c)
  endforeach()
  add_library(rdusim_fstapi STATIC ${FSTAPI_SOURCES})
  target_include_directories(rdusim_fstapi PRIVATE ${FSTAPI_INCLUDE})
  set_source_files_properties(${FSTAPI_INCLUDE}/gtkwave/fstapi.c PROPERTIES
    COMPILE_OPTIONS "-include;${PROJECT_SOURCE_DIR}/traces/fst_files_in_c.h")
  target_compile_definitions(rdusim_fstapi PRIVATE FST_CONFIG_INCLUDE="gtkwave/fst_config.h")
  target_compile_options(rdusim_fstapi PRIVATE -w)  # not ours
  target_link_libraries(rdusim_fstapi PUBLIC ZLIB::ZLIB)
  target_link_libraries(rdusim_traces PRIVATE rdusim_fstapi)
  # One source knows of it.
  set_source_files_properties(traces/fst.cpp PROPERTIES COMPILE_DEFINITIONS RDUSIM_FST INCLUDE_DIRECTORIES ${FSTAPI_INCLUDE})
else()
  message(STATUS "no .fst: fstapi (Debian: verilator) or zlib (zlib1g-dev) is missing")
endif()
