# The shipped machine descriptions become part of the binary: generated/shipped_targets.inc is a list of
# {"name", R"rdusim(text)rdusim"} entries, by name.
file(GLOB target_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/models/targets/*.toml)
list(SORT target_files)
set(text "")
foreach(file ${target_files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} content)
  string(APPEND text "{\"${name}\", R\"rdusim(${content})rdusim\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/shipped_targets.inc CONTENT "${text}")
