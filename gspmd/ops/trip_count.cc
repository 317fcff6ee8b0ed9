#include "gspmd/ops/trip_count.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "gspmd/ir/module.h"

namespace gspmd {
namespace {

void skip_punctuation(std::string_view* text) {
  while (!text->empty() && !std::isalnum(static_cast<unsigned char>(text->front())) &&
         text->front() != '_') {
    text->remove_prefix(1);
  }
}

// `{"known_trip_count":{"n":"12"}}`
std::optional<int64_t> stated_count(std::string_view text) {
  constexpr std::string_view kKey = "known_trip_count";
  size_t at = text.find(kKey);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + kKey.size());
  skip_punctuation(&text);
  if (text.empty() || text.front() != 'n') return std::nullopt;
  text.remove_prefix(1);
  skip_punctuation(&text);
  int64_t n = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc()) return std::nullopt;
  return n;
}

// The integer that `i` is, behind at most three instructions that keep it.
std::optional<int64_t> constant_of(const Instr* i) {
  for (int depth = 0; depth < 4; ++depth) {
    switch (i->opcode) {
      case Opcode::kConstant: {
        const Literal* literal = i->attrs<ConstantAttrs>().literal;
        return literal != nullptr && literal->shape.is_scalar() ? integer_at(*literal, 0)
                                                                : std::nullopt;
      }
      case Opcode::kCopy:
      case Opcode::kConvert:
      case Opcode::kBitcast:
      case Opcode::kReshape:
        i = i->operand(0);
        continue;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

// The element of the loop's state that `i` reads; -1: none.
int64_t state_element(const Instr* i) {
  while (i->opcode == Opcode::kCopy || i->opcode == Opcode::kBitcast ||
         i->opcode == Opcode::kConvert) {
    i = i->operand(0);
  }
  return i->opcode == Opcode::kGetTupleElement ? i->attrs<IndexAttrs>().index : -1;
}

// What the condition compares, looked for in calls and fusions that wrap it.
const Instr* comparison(const Computation& condition) {
  const Instr* i = condition.root();
  for (int hops = 0; hops < 3; ++hops) {
    if (i->opcode == Opcode::kCopy) {
      i = i->operand(0);
    } else if ((i->opcode == Opcode::kFusion || i->opcode == Opcode::kCall) && !i->called.empty()) {
      i = i->called[0]->root();
    } else {
      break;
    }
  }
  return i->opcode == Opcode::kCompare ? i : nullptr;
}

std::optional<int64_t> initial_value(const Instr& loop, int64_t element) {
  const Instr* state = loop.operand(0);
  if (state->opcode != Opcode::kTuple || element < 0 || element >= state->num_operands())
    return std::nullopt;
  return constant_of(state->operand(static_cast<int>(element)));
}

}  // namespace

std::optional<int64_t> trip_count(const Instr& loop) {
  if (loop.extras != nullptr) {
    for (std::string_view text : {loop.extras->backend_config, loop.extras->frontend_attributes}) {
      if (auto n = stated_count(text)) return n;
    }
  }
  const Instr* compare = comparison(*loop.called[0]);
  if (compare == nullptr) return std::nullopt;
  Direction direction = compare->attrs<CompareAttrs>().direction;
  const Instr *counter = compare->operand(0), *limit = compare->operand(1);
  if (direction == Direction::kGt) {
    std::swap(counter, limit);
    direction = Direction::kLt;
  }
  int64_t element = state_element(counter);
  if (element < 0 || (direction != Direction::kLt && direction != Direction::kLe))
    return std::nullopt;
  std::optional<int64_t> end = constant_of(limit);
  if (!end && limit->opcode == Opcode::kGetTupleElement) {
    end = initial_value(loop, limit->attrs<IndexAttrs>().index);
  }
  if (!end) return std::nullopt;
  int64_t start = initial_value(loop, element).value_or(0);
  return std::max<int64_t>(0, *end - start + (direction == Direction::kLe ? 1 : 0));
}

}  // namespace gspmd
