// Binds the readers and writers of plain JSON schemas.
#include "bindings/bindings.hpp"
#include "bindings/schemas/forms.hpp"
#include "bindings/schemas/member_nodes.hpp"
#include "bindings/schemas/plain_reader.hpp"
#include "bindings/schemas/plain_writer.hpp"
#include "bindings/schemas/schemas.hpp"

namespace tokenfst {

void bind_schemas(nanobind::module_& m) {
  bind_forms(m);
  bind_plain_reader(m);
  bind_member_nodes(m);
  bind_plain_writer(m);
}

}  // namespace tokenfst
