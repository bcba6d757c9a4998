#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>

#include "ids/address.hpp"
#include "store/memory/arena.hpp"
#include "store/types.hpp"
#include "transport/connection.hpp"

namespace troupe::store {

class ClientCore;

/// An object, and where it is to be had if this node does not have it.
struct Wanted {
  ObjectId object = {};
  std::uint64_t bytes = 0;
  ProcessId owner{};
  /// The store of the node that it was written on; nullptr: this one.
  runtime::AddressPtr at = nullptr;
};

struct ClientOptions {
  /// Views that nobody uses any more and that are still pinned, so that the next view of the object
  /// asks nobody. They go when the node is short of memory. Arguments of calls that wait for their
  /// turn are such views too.
  std::size_t idle_views = 256;
  /// Objects are numbered from the next one on: of a process that had a client before, whose names
  /// must not come again.
  std::uint64_t last_object = 0;
};

/// The bytes of a sealed object, read-only and shared with every process of the job on this node.
/// The object stays in memory as long as this lives, and until a while after. Immutable; any
/// thread; may outlive the client.
class View {
 public:
  View(std::shared_ptr<ClientCore> core, ObjectId object, std::span<const std::byte> bytes)
      : core_(std::move(core)), object_(object), bytes_(bytes) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  ~View();

  ObjectId object() const { return object_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<ClientCore> core_;
  ObjectId object_;
  std::span<const std::byte> bytes_;
};
using ViewPtr = std::shared_ptr<const View>;

/// An object that is being written in place. Ends with seal; without it, the object is gone. One
/// thread at a time.
class Writable {
 public:
  Writable(std::shared_ptr<ClientCore> core, ObjectId object, std::span<std::byte> bytes, bool warm)
      : core_(std::move(core)), object_(object), bytes_(bytes), warm_(warm) {}
  Writable(Writable&&) noexcept = default;
  Writable& operator=(Writable&&) = delete;
  ~Writable();

  ObjectId object() const { return object_; }
  std::span<std::byte> bytes() const { return bytes_; }  ///< what stood there before is not cleared
  /// Takes the page faults of the pages that this process has not written to before, all at once.
  /// Blocks: about 0.3 ms for each MiB. Client::create(bytes, owner) has done it.
  void prepare();
  /// All bytes are written. From now on nobody changes them: writing through what bytes() gave is a
  /// bug that is not seen.
  ObjectId seal() &&;
  /// As seal, with a view that needs no message.
  ViewPtr seal_and_view() &&;

 private:
  std::shared_ptr<ClientCore> core_;  // none: it was sealed or moved from
  ObjectId object_;
  std::span<std::byte> bytes_;
  bool warm_;
};

/// The object store of its node, for a process. Any thread, unless it says otherwise; handlers run
/// on the loop, or within the call where no answer is needed. A refusal says why with numbers; the
/// node answers each request within its ServiceOptions::patience.
class Client {
 public:
  using Send = std::function<void(transport::Outgoing&&)>;
  using OnCreated = std::function<void(std::variant<Writable, Refusal>)>;
  using OnView = std::function<void(std::variant<ViewPtr, Refusal>)>;

  /// `send` is called on the loop, and hands the message to the node: in order.
  Client(boost::asio::io_context& loop, ProcessId self, Mapping arena, Send send,
         ClientOptions options = {});
  ~Client();  ///< on the loop's thread, or once it has stopped: as closed()

  /// `owner` will free it.
  void create(std::uint64_t bytes, ProcessId owner, OnCreated done);
  void view(const Wanted& wanted, OnView done);
  /// The same, blocking: not on the loop's thread.
  std::variant<Writable, Refusal> create(std::uint64_t bytes, ProcessId owner);
  std::variant<ViewPtr, Refusal> view(ObjectId object);
  /// By the owner. Views of it live on.
  void free(const Wanted& place);
  void free(ObjectId object) { free(Wanted{.object = object}); }

  // ---- the loop's thread
  bool on_message(wire::Message::Reader message);  ///< false: it is not for the store
  /// The node is gone: what waits is refused, and what is asked later.
  void closed(const std::string& why);
  std::uint64_t last_object() const;  ///< the number of the last one that was made

 private:
  std::shared_ptr<ClientCore> core_;
};

}  // namespace troupe::store
