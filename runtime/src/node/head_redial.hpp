#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "ids/ids.hpp"
#include "transport/handshake/handshake.hpp"
#include "transport/handshake/proof.hpp"
#include "transport/silence_timer.hpp"

namespace troupe::node {

/// Connects a node to its head again, once the connection between the two has broken. It has no
/// deadline: its owner waits for as long as it may be without a head (NodeOptions::head_silence).
/// Belongs to the node's loop; dropped, it tries no more.
///
///   [dialling] --proven--> [asked: nodeResume is sent] --nodeResumed--> resumed()
///     ^  |                        |--shutdown--> ended(): the head does not take the node back
///     |  |                        `--it breaks, or no answer in time--.
///     |  |--nobody listens, another token, cluster or version; no other way--> ended()
///     |  `--the same beside another way; unreachable, busy, cut off---|
///     `--a pause, which doubles up to kLongestPause-------------------'
///
/// The first attempt is made after the pause that it is given: at none, where the head has ended is
/// known at once.
class HeadRedial : public std::enable_shared_from_this<HeadRedial> {
 public:
  static constexpr std::chrono::milliseconds kFirstPause{50};
  static constexpr std::chrono::milliseconds kLongestPause{2000};
  /// For the head to answer nodeResume, in time that this process runs.
  static constexpr std::chrono::seconds kAnswer{5};
  static constexpr std::chrono::milliseconds kLongestAttempt{10'000};

  /// Who comes back, as nodeJoined named it.
  struct Self {
    runtime::NodeId node{};
    std::uint64_t incarnation = 0;
    transport::Bytes32 secret{};
  };
  enum class End {
    HeadGone,  ///< nothing listens there any more: the head's process has ended
    Refused    ///< by the head, or by what listens there now
  };
  /// Each may drop this object.
  struct Callbacks {
    /// The head can be reached: nothing may be heard of it in another way from now on. -> how many
    /// of its messages have been.
    std::function<std::uint64_t()> on_reached;
    /// The connection that this is to replace has not ended: it may lead to the head where a new one
    /// is refused, as a network may treat the two differently.
    std::function<bool()> has_other_way;
    /// An attempt came to nothing, and there will be another one.
    std::function<void(const std::string& why)> failed;
    std::function<void(transport::ConnectionPtr, std::uint64_t arrived)> resumed;
    std::function<void(End, const std::string& why)> ended;
  };

  HeadRedial(boost::asio::io_context& loop, transport::Endpoint head,
             transport::ClientOptions client, Self self, Callbacks callbacks);
  ~HeadRedial();
  void start(std::chrono::milliseconds pause);

 private:
  void dial();
  void dial_after(std::chrono::milliseconds pause);
  void on_denied(const transport::Denied& denied);
  void ask(transport::ConnectionPtr connection);
  void on_answer(wire::Message::Reader answer);
  void try_again(const std::string& why);
  void drop();

  boost::asio::io_context& loop_;
  const transport::Endpoint head_;
  transport::ClientOptions client_;
  const Self self_;
  const Callbacks callbacks_;
  transport::ConnectionPtr connection_;  // that has been asked through
  transport::SilenceTimer answer_limit_;
  boost::asio::steady_timer pause_;
  std::chrono::milliseconds next_pause_ = kFirstPause;
};

}  // namespace troupe::node
