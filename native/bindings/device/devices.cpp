// Binds the masking of logits and the masking loop in host memory.
#include "bindings/bindings.hpp"
#include "bindings/device/device.hpp"
#include "bindings/device/logits.hpp"

namespace tokenfst {

void bind_devices(nanobind::module_& m) {
  bind_logits(m);
  bind_device(m);
}

}  // namespace tokenfst
