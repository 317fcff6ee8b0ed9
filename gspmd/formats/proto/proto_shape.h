#pragma once

#include "gspmd/formats/proto/hlo.pb.h"
#include "gspmd/ir/context.h"

namespace gspmd {

// Shapes and constants as messages. Reading throws Error for sizes, layouts and types that no text
// could spell.
Shape read_shape(Context& context, const proto::ShapeProto& from, int depth = 0);
void write_shape(Shape shape, proto::ShapeProto* to);
Shape read_function_shape(Context& context, const proto::ProgramShapeProto& from,
                          std::vector<Shape>* parameters);

Literal read_literal(Context& context, const proto::LiteralProto& from, Shape shape);
void write_literal(const Literal& literal, proto::LiteralProto* to);

// What a text would spell: `(f32[2]{0}, s32[])`.
Shape shape_of_text(Context& context, const std::string& text);
// `s32[2]{0} {1, 2}`, and back.
const Literal* literal_of_text(Context& context, std::string_view text);
std::string text_of_literal(Context& context, const Literal& literal);

}  // namespace gspmd
