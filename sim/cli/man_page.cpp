#include <fmt/format.h>

#include "sim/cli/command_tree.h"
#include "sim/version.h"

namespace rdusim::cli {

namespace {

// Text as roff has it: nothing of it is a request or an escape, and dashes are those that one types.
std::string roff(std::string_view text) {
  std::string out;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    line_begins = c == '\n';
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      case '"':
        out += "\\(dq";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string value_of(const TreeOption& o) {
  return o.value ? " \\fIVALUE\\fR" : "";
}

// What a command is given, on one line.
std::string synopsis(const std::string& path, const TreeCommand& c) {
  std::string out = "\\fB" + roff(path) + "\\fR";
  for (const TreeOption& o : c.options) {
    if (o.place.empty()) continue;
    const std::string place = fmt::format("\\fI{}\\fR{}", roff(o.place), o.repeats ? " ..." : "");
    out += o.required ? " " + place : " [" + place + "]";
  }
  for (const TreeOption& o : c.options) {
    if (o.place.empty() && o.required) out += " \\fB" + roff(o.names.front()) + "\\fR" + value_of(o);
  }
  if (!c.commands.empty()) out += " \\fICOMMAND\\fR";
  return out + " [\\fIOPTION\\fR ...]";
}

std::string option_text(const TreeOption& o) {
  std::string head;
  if (!o.place.empty()) head = "\\fI" + roff(o.place) + "\\fR";
  for (const std::string& name : o.names) head += (head.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  std::string help = roff(o.help);
  if (!o.standard.empty()) help += " [" + roff(o.standard) + "]";
  if (help.empty()) help = "\\&";
  return fmt::format(".TP\n{}{}\n{}\n", head, value_of(o), help);
}

// "Example:\n  a\n  b", and what else a footer says, as paragraphs; lines that are indented are kept as they stand.
std::string footer_text(const std::string& footer) {
  std::string out;
  bool kept = false;
  for (std::size_t from = 0; from < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', from), footer.size());
    const std::string_view line = std::string_view(footer).substr(from, end - from);
    const bool indented = line.starts_with("  ");
    if (indented != kept) out += indented ? ".PP\n.RS 4\n.nf\n" : ".fi\n.RE\n";
    kept = indented;
    if (line.empty())
      out += ".PP\n";
    else
      out += (out.empty() ? ".PP\n" : "") + roff(line.substr(indented ? 2 : 0)) + "\n";
    from = end + 1;
  }
  return out + (kept ? ".fi\n.RE\n" : "");
}

std::string command_text(const std::string& above, const TreeCommand& c) {
  const std::string path = above + " " + c.name;
  std::string out = fmt::format(".SS {}\n{}\n.PP\n{}.\n", roff(path), synopsis(path, c), roff(c.summary));
  for (const TreeOption& o : c.options) out += option_text(o);
  out += footer_text(c.footer);
  for (const TreeCommand& below : c.commands) out += command_text(path, below);
  return out;
}

}  // namespace

std::string man_page(const TreeCommand& tree) {
  std::string out = fmt::format(
      ".\\\" Written by `rdusim man` from the definitions of its command line.\n"
      ".TH RDUSIM 1 \"\" \"rdusim {}\" \"User Commands\"\n"
      ".SH NAME\nrdusim \\- compiles models for multi\\-chip dataflow machines and simulates them\n"
      ".SH SYNOPSIS\n\\fBrdusim\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR ...]\n"
      ".SH DESCRIPTION\n{}\n",
      roff(version), roff(tree.summary));
  for (const TreeOption& o : tree.options) out += option_text(o);
  out += footer_text(tree.footer);
  out += ".SH COMMANDS\n";
  for (const TreeCommand& c : tree.commands) out += command_text(tree.name, c);
  return out;
}

}  // namespace rdusim::cli
