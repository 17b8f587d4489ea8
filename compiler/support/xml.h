// Text in XML: SVG charts, JUnit tables.
#pragma once

#include <string>
#include <string_view>

namespace rdusim {

// Text as it stands between tags and within quoted attributes.
std::string xml_text(std::string_view text);

}  // namespace rdusim
