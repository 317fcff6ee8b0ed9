// HLO's named form: mesh['a'=2,'b'=4], [{'a'}, {'b':(2)2, ?}], replicated={'b':(1)2}

#include "gspmd/sharding/spelling_reader.h"

namespace gspmd {
namespace {

using Kind = ShardingSpelling::Kind;

void read_mesh_ids(SpellingReader* reader, NamedMesh* mesh) {
  reader->take("=");
  reader->take("(");
  const size_t at = reader->position();
  std::vector<size_t> offsets;
  if (reader->peek('[')) {
    mesh->device_ids = read_iota(reader);
  } else {
    mesh->device_ids.ids = read_ids(reader, &offsets);
    check_ids(*reader, mesh->device_ids.ids, offsets);
  }
  reader->take(")");
  finish_mesh_devices(*reader, at, mesh);
}

// The whole value: `replicated`, `manual` or `unreduced`, with no `=` behind it.
bool read_whole(SpellingReader* reader, ShardingSpelling* s) {
  const std::pair<std::string_view, SubgroupType> kTypes[] = {
      {"replicated", SubgroupType::kReplicated},
      {"manual", SubgroupType::kManual},
      {"unreduced", SubgroupType::kUnreduced}};
  for (auto [word, type] : kTypes) {
    if (!reader->try_word(word)) continue;
    s->named_whole = type;
    if (type == SubgroupType::kUnreduced && reader->try_take("=")) {
      reader->fail_here("expected the dimensions before unreduced=",
                        "write [{'x'}, {}], unreduced={'y'} with one {} for each dimension");
    }
    return true;
  }
  return false;
}

bool read_axis_set(SpellingReader* reader, ShardingSpelling* s, AxisOffsets* offsets) {
  if (reader->try_word("replicated")) {
    reader->take("=");
    s->replicated_axes = read_axes(reader, &s->mesh, &offsets->replicated);
  } else if (reader->try_word("unreduced")) {
    reader->take("=");
    s->unreduced_combiner = read_combiner(reader);
    s->unreduced_axes = read_axes(reader, &s->mesh, &offsets->unreduced);
  } else if (reader->try_word("manual")) {
    reader->take("=");
    s->manual_axes = read_axes(reader, &s->mesh, &offsets->manual);
  } else {
    return false;
  }
  return true;
}

}  // namespace

NamedMesh read_hlo_mesh(SpellingReader* reader) {
  NamedMesh mesh;
  read_mesh_axes(reader, &mesh);
  SpellingReader ahead = *reader;
  if (ahead.try_take(",") && ahead.try_word("device_ids")) {
    *reader = ahead;
    read_mesh_ids(reader, &mesh);
  }
  return mesh;
}

void read_named(SpellingReader* reader, MeshWord word, ShardingSpelling* s) {
  s->kind = Kind::kNamed;
  if (word == MeshWord::kMaximalMesh) {
    reader->take("[");
    reader->take("device_id");
    reader->take("=");
    const size_t at = reader->position();
    s->mesh.maximal_device = reader->integer();
    if (*s->mesh.maximal_device < 0) reader->fail(at, "a device below 0 does not exist");
    reader->take("]");
    return;
  }
  s->mesh = read_hlo_mesh(reader);
  reader->take(",");
  if (read_whole(reader, s)) return;
  AxisOffsets offsets;
  reader->list("[", "]", [&] { s->dims.push_back(read_dim(reader, &s->mesh, &offsets.dims)); });
  SpellingReader ahead = *reader;
  while (ahead.try_take(",") && read_axis_set(&ahead, s, &offsets)) *reader = ahead;
  check_axes(*reader, *s, &s->mesh, offsets);
}

}  // namespace gspmd
