#include "transport/samples.hpp"

#include <algorithm>
#include <cstdint>

#include <capnp/dynamic.h>
#include <capnp/schema.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include "transport/connection.hpp"
#include "transport/frame.hpp"

namespace troupe::transport::test {
namespace {

/// Fills a list or struct of any type, so that a field added to the schema is covered without a
/// word here.
void fill(capnp::DynamicStruct::Builder into, int depth);

void fill(capnp::DynamicList::Builder into, int depth) {
  const auto type = into.getSchema().getElementType();
  for (unsigned i = 0; i < into.size(); ++i) {
    if (type.isStruct()) {
      fill(into[i].as<capnp::DynamicStruct>(), depth - 1);
    } else if (type.isText()) {
      into.set(i, "element");
    } else {
      into.set(i, i + 1);
    }
  }
}

void fill_field(capnp::DynamicStruct::Builder into, capnp::StructSchema::Field field, int depth) {
  const auto type = field.getType();
  switch (type.which()) {
    case capnp::schema::Type::VOID:
      return into.set(field, capnp::VOID);
    case capnp::schema::Type::BOOL:
      return into.set(field, true);
    case capnp::schema::Type::TEXT:
      return into.set(field, "some text");
    case capnp::schema::Type::DATA:
      return into.set(
          field,
          capnp::Data::Reader(
              reinterpret_cast<const unsigned char*>("thirty-two bytes, or about that."), 32));
    case capnp::schema::Type::ENUM:
      return into.set(field, capnp::DynamicEnum(type.asEnum(), 1));
    case capnp::schema::Type::STRUCT:
      return fill(into.init(field).as<capnp::DynamicStruct>(), depth - 1);
    case capnp::schema::Type::LIST:
      return fill(into.init(field, 3).as<capnp::DynamicList>(), depth);
    default:
      return into.set(field, 42);
  }
}

void fill(capnp::DynamicStruct::Builder into, int depth) {
  if (depth == 0) return;
  for (const auto field : into.getSchema().getNonUnionFields()) fill_field(into, field, depth);
  // Of a union the last member: the first is what an empty message has.
  const auto members = into.getSchema().getUnionFields();
  if (members.size() > 0) fill_field(into, members[members.size() - 1], depth);
}

void visit(capnp::DynamicValue::Reader value, std::size_t& sum);

void visit(capnp::DynamicStruct::Reader value, std::size_t& sum) {
  for (const auto field : value.getSchema().getNonUnionFields()) visit(value.get(field), sum);
  KJ_IF_MAYBE (member, value.which()) {
    visit(value.get(*member), sum);
  }
}

void visit(capnp::DynamicValue::Reader value, std::size_t& sum) {
  switch (value.getType()) {
    case capnp::DynamicValue::TEXT:
      for (const char c : value.as<capnp::Text>()) sum += static_cast<unsigned char>(c);
      break;
    case capnp::DynamicValue::DATA:
      for (const auto byte : value.as<capnp::Data>()) sum += byte;
      break;
    case capnp::DynamicValue::LIST:
      for (const auto element : value.as<capnp::DynamicList>()) visit(element, sum);
      break;
    case capnp::DynamicValue::STRUCT:
      visit(value.as<capnp::DynamicStruct>(), sum);
      break;
    default:
      ++sum;
  }
}

}  // namespace

std::vector<std::string> sample_frames() {
  std::vector<std::string> frames;
  for (const auto member : capnp::Schema::from<wire::Message>().getUnionFields()) {
    Outgoing message;
    fill_field(message.root(), member, 8);
    std::vector<char> bytes;
    message.append_to(bytes);
    frames.emplace_back(bytes.begin(), bytes.end());
  }
  return frames;
}

bool visit_frames(std::string_view bytes) {
  FrameReader reader(std::size_t{1} << 20);
  std::size_t sum = 0;
  while (reader.error().empty()) {
    if (const auto body = reader.next()) {
      const kj::ArrayPtr<const capnp::word> segments[] = {{body->data(), body->size()}};
      try {
        capnp::SegmentArrayMessageReader message(
            segments, {.traversalLimitInWords = 16 * body->size() + 65536});
        visit(capnp::DynamicStruct::Reader(message.getRoot<wire::Message>()), sum);
      } catch (const kj::Exception&) {
        return false;
      }
    } else if (bytes.empty()) {
      break;
    } else if (reader.error().empty()) {
      const auto space = reader.space();
      const auto count = std::min(space.size(), bytes.size());
      std::copy_n(bytes.begin(), count, space.begin());
      reader.filled(count);
      bytes.remove_prefix(count);
    }
  }
  return reader.error().empty() && reader.cut_off().empty();
}

}  // namespace troupe::transport::test
