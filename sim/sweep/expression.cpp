#include "sim/sweep/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/support/file.h"

namespace rdusim {

std::optional<double> number_of(const Cell& c) {
  if (const auto* whole = std::get_if<std::int64_t>(&c)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&c)) return *real;
  return std::nullopt;
}

std::string to_string(const Cell& c) {
  if (const auto* truth = std::get_if<bool>(&c)) return *truth ? "true" : "false";
  if (const auto* whole = std::get_if<std::int64_t>(&c)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&c)) return fmt::format("{}", *real);
  if (const auto* text = std::get_if<std::string>(&c)) return *text;
  return "";
}

Json to_json(const Cell& c) {
  if (const auto* truth = std::get_if<bool>(&c)) return *truth;
  if (const auto* whole = std::get_if<std::int64_t>(&c)) return *whole;
  if (const auto* real = std::get_if<double>(&c)) return *real;
  if (const auto* text = std::get_if<std::string>(&c)) return *text;
  return {};
}

// Recursive descent; each function of the grammar appends its nodes.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  Result<Expression> run() {
    next();
    disjunction();
    if (problem_.empty() && token_ != Token::end) fail("is not expected here");
    if (problem_.empty()) return std::move(out_);
    Diagnostics d;
    d.error(Code::RDU8065, where_, "'{}': {}", text_, problem_);
    return d;
  }

 private:
  using Op = Expression::Op;
  enum class Token : std::uint8_t { end, name, quoted, text, number, sign };
  static constexpr int deepest = 64;

  void fail(const std::string& why) {
    if (!problem_.empty()) return;
    problem_ = fmt::format("at position {}, {} {}", start_ + 1,
                           token_ == Token::end ? std::string("the end") : fmt::format("'{}'", word_), why);
    token_ = Token::end;
    at_ = text_.size();
  }

  static bool is_name(char c, bool first) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    return letter || (!first && ((c >= '0' && c <= '9') || c == '.' || c == '[' || c == ']'));
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
    start_ = at_;
    word_.clear();
    if (at_ == text_.size()) {
      token_ = Token::end;
      return;
    }
    const char c = text_[at_];
    if (is_name(c, true)) {
      while (at_ < text_.size() && is_name(text_[at_], false)) word_ += text_[at_++];
      token_ = Token::name;
    } else if (c == '"' || c == '\'' || c == '`') {
      const std::size_t close = text_.find(c, at_ + 1);
      if (close == std::string_view::npos) {
        word_ = c;
        fail("has no other end");
        return;
      }
      word_ = text_.substr(at_ + 1, close - at_ - 1);
      at_ = close + 1;
      token_ = c == '`' ? Token::quoted : Token::text;
    } else if (is_digit(c) || c == '.') {
      const auto end = text_.find_first_not_of("0123456789.eE", at_);
      word_ = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
      at_ += word_.size();
      token_ = Token::number;
    } else {
      word_ = c;
      ++at_;
      const bool comparison = c == '<' || c == '>' || c == '=' || c == '!';
      if (comparison && at_ < text_.size() && text_[at_] == '=') word_ += text_[at_++];
      token_ = Token::sign;
    }
  }

  bool is(const char* word) const { return (token_ == Token::name || token_ == Token::sign) && word_ == word; }
  bool take(const char* word) {
    if (!is(word)) return false;
    next();
    return true;
  }
  void put(Op op) { out_.nodes_.push_back({op, 0, {}}); }

  void disjunction() {
    conjunction();
    while (problem_.empty() && take("or")) conjunction(), put(Op::or_);
  }
  void conjunction() {
    negation();
    while (problem_.empty() && take("and")) negation(), put(Op::and_);
  }
  void negation() {
    if (++depth_ > deepest) return fail("is nested too deeply");
    if (take("not")) {
      negation();
      put(Op::not_);
    } else {
      comparison();
    }
    --depth_;
  }
  void comparison() {
    sum();
    for (const auto& [word, op] :
         {std::pair{"==", Op::equal}, std::pair{"!=", Op::differ}, std::pair{"<=", Op::at_most},
          std::pair{">=", Op::at_least}, std::pair{"<", Op::less}, std::pair{">", Op::greater}}) {
      if (!problem_.empty() || !take(word)) continue;
      sum();
      put(op);
      return;
    }
  }
  void sum() {
    product();
    while (problem_.empty() && (is("+") || is("-"))) {
      const Op op = is("+") ? Op::add : Op::subtract;
      next();
      product();
      put(op);
    }
  }
  void product() {
    factor();
    while (problem_.empty() && (is("*") || is("/"))) {
      const Op op = is("*") ? Op::multiply : Op::divide;
      next();
      factor();
      put(op);
    }
  }
  void factor() {
    if (!problem_.empty()) return;
    if (++depth_ > deepest) return fail("is nested too deeply");
    if (take("-")) {
      factor();
      put(Op::negate);
    } else if (take("(")) {
      disjunction();
      if (problem_.empty() && !take(")")) fail("stands where ')' is missing");
    } else if (token_ == Token::number) {
      number();
    } else if (token_ == Token::text) {
      out_.nodes_.push_back({Op::literal, 0, Cell(word_)});
      next();
    } else if (is("true") || is("false")) {
      out_.nodes_.push_back({Op::literal, 0, Cell(is("true"))});
      next();
    } else if ((token_ == Token::name && !is("and") && !is("or") && !is("not")) || token_ == Token::quoted) {
      column();
      next();
    } else {
      fail("stands where a column or a value is expected");
    }
    --depth_;
  }
  void column() {
    const auto known = std::find(out_.columns_.begin(), out_.columns_.end(), word_);
    const auto index = static_cast<std::size_t>(known - out_.columns_.begin());
    if (known == out_.columns_.end()) out_.columns_.push_back(word_);
    out_.nodes_.push_back({Op::column, index, {}});
  }
  void number() {
    const char* end = word_.data() + word_.size();
    std::int64_t whole = 0;
    double real = 0;
    if (const auto r = std::from_chars(word_.data(), end, whole); r.ec == std::errc() && r.ptr == end) {
      out_.nodes_.push_back({Op::literal, 0, Cell(whole)});
    } else if (const auto f = std::from_chars(word_.data(), end, real); f.ec == std::errc() && f.ptr == end) {
      out_.nodes_.push_back({Op::literal, 0, Cell(real)});
    } else {
      return fail("is not a number");
    }
    next();
  }

  std::string_view text_;
  std::string where_;
  std::size_t at_ = 0, start_ = 0;
  Token token_ = Token::end;
  std::string word_;
  int depth_ = 0;
  std::string problem_;
  Expression out_;
};

Result<Expression> Expression::parse(std::string_view text, const std::string& where) {
  return ExpressionParser(text, where).run();
}

Cell Expression::combine(Op op, const Cell& a, const Cell& b) {
  const auto x = number_of(a);
  const auto y = number_of(b);
  if (op == Op::and_ || op == Op::or_) {
    const bool* p = std::get_if<bool>(&a);
    const bool* q = std::get_if<bool>(&b);
    const bool left = p != nullptr && *p;
    const bool right = q != nullptr && *q;
    return op == Op::and_ ? left && right : left || right;
  }
  if (op == Op::add || op == Op::subtract || op == Op::multiply || op == Op::divide) {
    if (!x || !y) return {};
    const double v = op == Op::add ? *x + *y : op == Op::subtract ? *x - *y : op == Op::multiply ? *x * *y : *x / *y;
    if (!std::isfinite(v)) return {};
    return v;
  }
  if (a.index() == 0 || b.index() == 0) return false;
  std::partial_ordering order = std::partial_ordering::unordered;
  if (x && y)
    order = *x <=> *y;
  else if (a.index() == b.index())
    order = to_string(a) <=> to_string(b);
  else
    return op == Op::differ;
  switch (op) {
    case Op::equal:
      return order == 0;
    case Op::differ:
      return order != 0;
    case Op::less:
      return order < 0;
    case Op::at_most:
      return order <= 0;
    case Op::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool Expression::holds(const std::vector<Cell>& values) const {
  std::vector<Cell> stack;
  for (const Node& n : nodes_) {
    if (n.op == Op::column) {
      stack.push_back(n.column < values.size() ? values[n.column] : Cell());
    } else if (n.op == Op::literal) {
      stack.push_back(n.literal);
    } else if (n.op == Op::not_ || n.op == Op::negate) {
      Cell& top = stack.back();
      if (n.op == Op::not_) {
        const bool* truth = std::get_if<bool>(&top);
        top = truth != nullptr ? Cell(!*truth) : Cell();
      } else {
        const auto v = number_of(top);
        top = v ? Cell(-*v) : Cell();
      }
    } else {
      const Cell right = std::move(stack.back());
      stack.pop_back();
      stack.back() = combine(n.op, stack.back(), right);
    }
  }
  const bool* truth = stack.empty() ? nullptr : std::get_if<bool>(&stack.back());
  return truth != nullptr && *truth;
}

Diagnostics check_columns(const std::vector<std::string>& used, const std::vector<std::string>& names,
                          const std::string& where) {
  Diagnostics d;
  for (const std::string& name : used) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    Diagnostic& e = d.error(Code::RDU8066, where, "there is no column '{}'", name);
    const std::vector<std::string_view> views(names.begin(), names.end());
    if (const auto near = nearest(name, views); !near.empty()) e.suggest("did you mean '{}'?", near);
    e.suggest("the columns are {}", fmt::join(names, ", "));
  }
  return d;
}

}  // namespace rdusim
