// The list of diagnostics is held to its own rules: one line a code, in its section, in order, with a rule and a cure.
#include <doctest/doctest.h>

#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rdusim::codes_test {

namespace {

struct Entry {
  int number;
  std::string_view identifier;
  std::string_view name;
  std::string_view rule;
  std::string_view cure;
};

const std::vector<Entry> entries = {
#define RDU_CODE(number, identifier, name, rule, cure) {number, #identifier, name, rule, cure},
#include "compiler/support/codes.def"
#undef RDU_CODE
};

// What is wrong with a list of codes, a line each.
std::vector<std::string> faults_of(const std::vector<Entry>& list) {
  std::vector<std::string> faults;
  const auto fault = [&](const Entry& e, const std::string& why) {
    faults.push_back(std::string(e.identifier) + ": " + why);
  };
  std::set<int> numbers;
  std::map<std::string_view, std::string_view> names;
  int last = 0;
  for (const Entry& e : list) {
    if (e.identifier != "RDU" + std::to_string(e.number)) fault(e, "its identifier is not RDU and its number");
    if (e.number < 1000 || e.number > 9999) fault(e, "a code has four digits");
    if (!numbers.insert(e.number).second) fault(e, "its number stands twice");
    if (e.number <= last) fault(e, "it is out of order, so that its section is not where it stands");
    last = e.number;
    if (!names.emplace(e.name, e.identifier).second) fault(e, "its name is that of " + std::string(names[e.name]));
    if (e.name.empty()) fault(e, "it has no name");
    for (char c : e.name) {
      if (!(std::islower(static_cast<unsigned char>(c)) || std::isdigit(static_cast<unsigned char>(c)) || c == '-')) {
        fault(e, "its name is not lower case with hyphens");
        break;
      }
    }
    if (e.rule.size() < 10) fault(e, "it has no rule");
    if (e.cure.empty()) fault(e, "it has no cure");
    if (e.rule.ends_with('.') || e.cure.ends_with('.')) fault(e, "rule and cure are a sentence without its full stop");
  }
  return faults;
}

}  // namespace

TEST_CASE("every code is unique, in its section, with a name, a rule and a cure") {
  CHECK(entries.size() > 100);
  for (const std::string& fault : faults_of(entries)) FAIL_CHECK(fault);
}

TEST_CASE("a bad list of codes is seen") {
  CHECK(faults_of({{1001, "RDU1001", "a", "a rule that is long", "cure"}}).empty());
  CHECK(faults_of({{1001, "RDU1002", "a", "a rule that is long", "cure"}}).size() == 1);
  CHECK(faults_of({{101, "RDU101", "a", "a rule that is long", "cure"}}).size() == 1);
  CHECK(faults_of({{1001, "RDU1001", "A b", "a rule that is long", "cure"}}).size() == 1);
  CHECK(faults_of({{1001, "RDU1001", "a", "", "cure"}}).size() == 1);
  CHECK(faults_of({{1001, "RDU1001", "a", "a rule that is long", ""}}).size() == 1);
  CHECK(faults_of({{2001, "RDU2001", "a", "a rule that is long", "cure"},
                   {1001, "RDU1001", "b", "a rule that is long", "cure"}})
            .size() == 1);
  CHECK(faults_of({{1001, "RDU1001", "a", "a rule that is long", "cure"},
                   {1001, "RDU1001", "a", "a rule that is long", "cure"}})
            .size() == 3);
}

}  // namespace rdusim::codes_test
