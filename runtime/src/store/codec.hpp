#pragma once

#include "store/types.hpp"
#include "wire/message.capnp.h"

namespace troupe::store {

/// Between the wire's structs and the store's values. What a peer sent is checked by who uses it.
inline ObjectId read_object(wire::ObjectKey::Reader key) {
  return {ProcessId(key.getProcess()), key.getNumber()};
}
inline void write_object(wire::ObjectKey::Builder into, ObjectId object) {
  into.setProcess(object.process.value());
  into.setNumber(object.number);
}
inline Extent read_extent(wire::ObjectExtent::Reader extent) {
  return {extent.getOffset(), extent.getBytes()};
}
inline void write_extent(wire::ObjectExtent::Builder into, Extent extent) {
  into.setOffset(extent.offset);
  into.setBytes(extent.bytes);
}
inline NodeAddress read_node(wire::Address::Reader from) {
  return {.node = NodeId(from.getNode()), .host = from.getHost(), .port = from.getPort()};
}
inline void write_node(wire::Address::Builder into, const NodeAddress& address) {
  into.setNode(address.node.value());
  into.setHost(address.host);
  into.setPort(address.port);
}

}  // namespace troupe::store
