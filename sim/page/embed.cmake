# Texts that become part of the binary: generated/<name>_<extension>.inc are string literals of the files given.
function(rdusim_embed_page)
  foreach(path ${ARGN})
    set(file ${PROJECT_SOURCE_DIR}/${path})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} content)
    get_filename_component(name ${file} NAME)
    string(REPLACE "." "_" name ${name})
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/${name}.inc CONTENT "R\"rdusim(${content})rdusim\"\n")
  endforeach()
endfunction()

# The chart library, from npm: `cmake --build ... --target dashboard_assets`. Never part of the ordinary build.
find_program(NPM npm)
if(NPM)
  add_custom_target(dashboard_assets
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/npm
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_SOURCE_DIR}/sim/page/npm/package.json
            ${PROJECT_SOURCE_DIR}/sim/page/npm/package-lock.json ${PROJECT_BINARY_DIR}/npm
    COMMAND ${NPM} ci --prefix ${PROJECT_BINARY_DIR}/npm --omit=dev --ignore-scripts --no-audit --no-fund
    COMMAND ${CMAKE_COMMAND} -E copy ${PROJECT_BINARY_DIR}/npm/node_modules/echarts/dist/echarts.min.js
            ${PROJECT_BINARY_DIR}/share/rdusim/echarts.min.js
    COMMENT "ECharts from npm" VERBATIM)
else()
  message(STATUS "no charts: npm (Debian: npm) is missing; pages of view and dashboard then have tables only")
  add_custom_target(dashboard_assets
    COMMAND ${CMAKE_COMMAND} -E echo "npm (Debian: npm) is missing: install it, and configure again"
    COMMAND ${CMAKE_COMMAND} -E false VERBATIM)
endif()
install(FILES ${PROJECT_BINARY_DIR}/share/rdusim/echarts.min.js DESTINATION share/rdusim OPTIONAL)
