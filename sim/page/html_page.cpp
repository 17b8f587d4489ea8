#include "sim/page/html_page.h"

#include <fmt/format.h>

#include <vector>

#include "compiler/support/file.h"

namespace rdusim {

namespace {

constexpr std::string_view shared_script =
#include "page_js.inc"
    ;
constexpr std::string_view shared_style =
#include "page_css.inc"
    ;

// A script's hash as a content-security policy names it (W3C CSP 3, hash-source).
std::string csp_hash(std::string_view script) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256(script);
  std::vector<unsigned> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<unsigned>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8U | (i + j < bytes.size() ? bytes[i + j] : 0);
    for (std::size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? digits[group >> (18 - 6 * j) & 63U] : '=';
  }
  return "'sha256-" + out + "'";
}

bool ends_script(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower.find("</script") != std::string::npos || lower.find("<!--") != std::string::npos;
}

// JSON that may stand in a script element: '<' in it is only ever in a string.
std::string for_script(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) out += c == '<' ? std::string_view("\\u003c") : std::string_view(&c, 1);
  return out;
}

}  // namespace

Result<std::string> read_echarts(const std::string& path) {
  auto text = read_file(path, echarts_bytes_limit);
  if (!text) return text.diagnostics();
  Diagnostics d;
  if (text->find("echarts") == std::string::npos || ends_script(*text) || !is_utf8(*text)) {
    d.error(Code::RDU8042, path, "it is not the chart library: echarts.min.js of Apache ECharts");
    return d;
  }
  return text;
}

std::string html_page(const HtmlPage& page, const std::optional<std::string>& echarts) {
  std::string hashes = csp_hash(shared_script) + " " + csp_hash(page.script);
  if (echarts) hashes += " " + csp_hash(*echarts);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src "
      "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>\n",
      hashes, page.title);
  html += shared_style;
  html += page.style;
  html += "</style>\n</head>\n<body>\n<header><strong>rdusim</strong>";
  html += page.header;
  html +=
      "<button id=\"theme\" type=\"button\">light / dark</button></header>\n"
      "<main><p id=\"notice\" class=\"notice\" hidden>Charts are left out: ECharts was not there when this page was "
      "made. The tables have every number.</p><div id=\"main\"></div></main>\n<script type=\"application/json\" "
      "id=\"data\">";
  html += for_script(page.data);
  html += "</script>\n";
  if (echarts) html += "<script>" + *echarts + "</script>\n";
  for (const std::string_view script : {shared_script, page.script}) {
    html += "<script>";
    html += script;
    html += "</script>\n";
  }
  return html + "</body>\n</html>\n";
}

}  // namespace rdusim
