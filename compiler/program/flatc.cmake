# generated/prog_bin_generated.h from the published schema of prog.bin.
find_program(FLATC flatc REQUIRED)
set(schema ${PROJECT_SOURCE_DIR}/compiler/program/prog_bin.fbs)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/generated/prog_bin_generated.h
  COMMAND ${FLATC} --cpp --scoped-enums -o ${PROJECT_BINARY_DIR}/generated ${schema}
  DEPENDS ${schema})
add_custom_target(prog_bin_schema DEPENDS ${PROJECT_BINARY_DIR}/generated/prog_bin_generated.h)

# The compiler's version, which the file's header carries.
set_source_files_properties(compiler/program/segments.cpp PROPERTIES COMPILE_DEFINITIONS
                            RDUSIM_VERSION="${PROJECT_VERSION}")
