// Values of a JSON document by path, for reading reports and editing programs. What is not there fails the test.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/support/json.h"

namespace rdusim::test {

inline Json parsed(const std::string& text) {
  auto json = parse_json(text, "test", Code::RDU8001);
  INFO(text.substr(0, 200));
  REQUIRE(json);
  return *std::move(json);
}

inline Json& step(Json& j, std::string_view key) {
  INFO("key ", std::string(key));
  JsonObject* object = j.as_object();
  REQUIRE(object != nullptr);
  for (auto& [name, value] : *object)
    if (name == key) return value;
  FAIL("there is no such key");
  return j;
}

inline Json& step(Json& j, int index) {
  INFO("index ", index);
  JsonArray* array = j.as_array();
  REQUIRE(array != nullptr);
  REQUIRE(static_cast<std::size_t>(index) < array->size());
  return (*array)[static_cast<std::size_t>(index)];
}

// The value behind a path of keys and indices.
template <class... Path>
Json& at(Json& j, const Path&... path) {
  Json* here = &j;
  ((here = &step(*here, path)), ...);
  return *here;
}
template <class... Path>
const Json& at(const Json& j, const Path&... path) {
  return at(const_cast<Json&>(j), path...);
}

template <class... Path>
std::int64_t number(const Json& j, const Path&... path) {
  const auto v = at(j, path...).as_int64();
  REQUIRE(v);
  return *v;
}
template <class... Path>
double real(const Json& j, const Path&... path) {
  const auto v = at(j, path...).as_number();
  REQUIRE(v);
  return *v;
}
template <class... Path>
std::string text(const Json& j, const Path&... path) {
  const std::string* v = at(j, path...).as_string();
  REQUIRE(v != nullptr);
  return *v;
}
template <class... Path>
const JsonArray& list(const Json& j, const Path&... path) {
  const JsonArray* v = at(j, path...).as_array();
  REQUIRE(v != nullptr);
  return *v;
}
template <class... Path>
const JsonObject& members(const Json& j, const Path&... path) {
  const JsonObject* v = at(j, path...).as_object();
  REQUIRE(v != nullptr);
  return *v;
}

// Takes a key away; it must be there.
inline void remove(Json& j, std::string_view key) {
  JsonObject* object = j.as_object();
  REQUIRE(object != nullptr);
  const std::size_t before = object->size();
  std::erase_if(*object, [&](const JsonMember& m) { return m.first == key; });
  REQUIRE(object->size() + 1 == before);
}

// The element of `array` whose "name" is `name`.
inline Json& named(Json& array, std::string_view name) {
  INFO("named ", std::string(name));
  REQUIRE(array.as_array() != nullptr);
  for (Json& element : *array.as_array())
    if (text(element, "name") == name) return element;
  FAIL("there is no such element");
  return array;
}

}  // namespace rdusim::test
