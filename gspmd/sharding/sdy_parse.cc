// The sdy dialect's attributes: #sdy.sharding<@mesh, [{"x"}, {"y", ?}p1], replicated={"z"}>

#include <fmt/format.h>

#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;

// <["a"=2, "b"=4], device_ids=[...]>
NamedMesh read_sdy_mesh(SpellingReader* reader) {
  NamedMesh mesh;
  reader->take("<");
  read_mesh_axes(reader, &mesh);
  if (reader->try_take(",")) {
    reader->take("device_ids");
    reader->take("=");
    const size_t at = reader->position();
    std::vector<size_t> offsets;
    reader->take("[");
    if (!reader->peek(']')) mesh.device_ids.ids = read_ids(reader, &offsets);
    reader->take("]");
    check_ids(*reader, mesh.device_ids.ids, offsets);
    if (mesh.axes.empty() && mesh.device_ids.size() == 1) {
      mesh.maximal_device = mesh.device_ids.ids[0];
      mesh.device_ids = {};
    } else {
      finish_mesh_devices(*reader, at, &mesh);
    }
  }
  reader->take(">");
  return mesh;
}

std::optional<int> read_priority(SpellingReader* reader) {
  if (!reader->peek('p')) return std::nullopt;
  const size_t at = reader->position();
  const std::string_view word = reader->word();
  const bool number =
      word.size() > 1 && word.size() < 8 &&
      std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!number) {
    reader->fail(at, fmt::format("expected a priority, not '{}'", word), "write p0, p1, ...");
  }
  return std::stoi(std::string(word.substr(1)));
}

// <@mesh, [{"x"}, {}], replicated={...}, unreduced={...}>
ShardingSpelling read_sdy(SpellingReader* reader) {
  ShardingSpelling s;
  s.kind = Kind::kNamed;
  reader->take("<");
  const NamedMesh* mesh = nullptr;
  if (reader->try_take("@")) {
    s.mesh_name = reader->peek('"') ? reader->quoted() : std::string(reader->word());
    if (s.mesh_name.empty()) reader->fail_here("expected the name of a mesh");
  } else if (reader->try_word("mesh")) {
    s.mesh = read_sdy_mesh(reader);
    mesh = &s.mesh;
  } else {
    reader->fail_here("expected a mesh", "write @NAME or mesh<[\"x\"=2]>");
  }
  reader->take(",");
  AxisOffsets offsets;
  reader->list("[", "]", [&] {
    s.dims.push_back(read_dim(reader, mesh, &offsets.dims));
    s.dims.back().priority = read_priority(reader);
  });
  while (reader->try_take(",")) {
    if (reader->try_word("replicated")) {
      reader->take("=");
      s.replicated_axes = read_axes(reader, mesh, &offsets.replicated);
    } else if (reader->try_word("unreduced")) {
      reader->take("=");
      s.unreduced_combiner = read_combiner(reader);
      s.unreduced_axes = read_axes(reader, mesh, &offsets.unreduced);
    } else {
      reader->fail_here("expected replicated= or unreduced=");
    }
  }
  reader->take(">");
  check_axes(*reader, s, mesh, offsets);
  return s;
}

void read_sdy_tuple(SpellingReader* reader, ShardingSpelling* s) {
  s->kind = Kind::kTuple;
  reader->list("[", "]", [&] { s->elements.push_back(read_sdy(reader)); });
}

}  // namespace

ShardingSpelling parse_sdy_sharding(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  ShardingSpelling s;
  bool tuple = reader.try_take("#sdy.sharding_per_value");
  if (!tuple) reader.try_take("#sdy.sharding");
  SpellingReader ahead = reader;
  if (tuple || (ahead.try_take("<") && ahead.peek('['))) {
    reader.take("<");
    read_sdy_tuple(&reader, &s);
    reader.take(">");
  } else if (reader.peek('[')) {
    read_sdy_tuple(&reader, &s);
  } else {
    s = read_sdy(&reader);
  }
  *position = reader.end();
  return s;
}

NamedMesh parse_sdy_mesh(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  if (!reader.try_take("#sdy.mesh")) reader.try_word("mesh");
  NamedMesh mesh = read_sdy_mesh(&reader);
  *position = reader.end();
  return mesh;
}

std::vector<NamedAxis> parse_sdy_manual_axes(std::string_view text, size_t* position) {
  SpellingReader reader(text, *position);
  const bool attribute = reader.try_take("#sdy<");
  if (attribute) reader.take("manual_axes");
  std::vector<size_t> offsets;
  std::vector<NamedAxis> axes = read_axes(&reader, nullptr, &offsets);
  if (attribute) reader.take(">");
  *position = reader.end();
  return axes;
}

}  // namespace gspmd
