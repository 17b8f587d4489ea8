#include "traces/signal_tree.h"

namespace rdusim {

namespace {

char plain(char c) {
  const bool is = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  return is ? c : '_';
}

bool same(std::string_view plain_name, std::string_view name) {
  if (plain_name.size() != name.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (plain_name[i] != plain(name[i])) return false;
  return true;
}

}  // namespace

SignalTree::Scope SignalTree::add_scope(Scope outer, std::string_view name) {
  Node n;
  n.name_at = names_.size();
  if (name.empty()) name = "_";
  n.name_size = static_cast<std::uint32_t>(name.size());
  for (const char c : name) names_ += plain(c);
  const auto added = static_cast<Scope>(scopes_.size());
  scopes_.push_back(n);
  Node& o = scopes_[outer];
  (o.last == top ? o.first : scopes_[o.last].next) = added;
  o.last = added;
  return added;
}

SignalTree::Scope SignalTree::scope_in(Scope outer, std::string_view name) {
  for (Scope s = scopes_[outer].first; s != top; s = scopes_[s].next)
    if (same(name_of(scopes_[s]), name)) return s;
  return add_scope(outer, name);
}

std::uint32_t SignalTree::add(Scope scope, const Signal& signal) {
  const auto number = static_cast<std::uint32_t>(signals_.size());
  signals_.push_back(signal);
  Node& n = scopes_[scope];
  if (n.signals++ == 0) n.first_signal = number;
  return number;
}

}  // namespace rdusim
