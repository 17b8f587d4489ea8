// Elements of an operand or of a slice of it, row-major and little-endian: bytes of their own; or a view of bytes that
// somebody else holds and nobody writes, such as a file that is mapped, so that weights larger than the memory can be
// read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rdusim {

class ElementBytes {
 public:
  ElementBytes() = default;
  ElementBytes(std::vector<std::byte> own) : own_(std::move(own)) {}  // wherever bytes are asked for
  explicit ElementBytes(std::size_t zeros) : own_(zeros) {}
  // `holder` keeps `bytes` where they are. Requires a holder.
  ElementBytes(std::span<const std::byte> bytes, std::shared_ptr<const void> holder)
      : view_(bytes), holder_(std::move(holder)) {}

  bool is_view() const { return holder_ != nullptr; }
  std::size_t size() const { return is_view() ? view_.size() : own_.size(); }
  bool empty() const { return size() == 0; }
  const std::byte* data() const { return is_view() ? view_.data() : own_.data(); }
  const std::byte* begin() const { return data(); }
  const std::byte* end() const { return data() + size(); }
  const std::byte& operator[](std::size_t i) const { return data()[i]; }
  operator std::span<const std::byte>() const { return {data(), size()}; }

  // Require !is_view().
  std::byte* data() { return own_.data(); }
  std::byte* begin() { return own_.data(); }
  std::byte* end() { return own_.data() + own_.size(); }
  std::byte& operator[](std::size_t i) { return own_[i]; }
  std::byte& back() { return own_.back(); }
  void resize(std::size_t bytes) { own_.resize(bytes); }
  operator std::span<std::byte>() { return own_; }
  void clear() { *this = ElementBytes(); }

  friend bool operator==(const ElementBytes& a, const ElementBytes& b) {
    return a.size() == b.size() && (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
  }

 private:
  std::vector<std::byte> own_;
  std::span<const std::byte> view_;
  std::shared_ptr<const void> holder_;  // null: its own
};

}  // namespace rdusim
