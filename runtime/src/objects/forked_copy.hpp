#pragma once

#include <string_view>

/// A copy of this process that user code forks is in no cluster, until it joins one itself: its
/// rings, sockets and pages are those of who was copied, and it takes nothing from there. Noticed by
/// a handler of fork(), so that no call has to ask; a raw clone() goes unnoticed.
namespace troupe::runtime {

/// From the first call on, `leave` is called in each copy, before user code goes on there: with one
/// thread, and whatever lock another one held. It says whether this process had been in a cluster.
void watch_for_copies(bool (*leave)());
/// This process is a copy of one that was in a cluster, and has joined none since.
bool is_forked_copy();
/// It joins one now: what copies share with who was copied is made anew.
void join_as_copy();

/// A copy shares this socket, and would keep it open after the process has ended: whoever is at its
/// other end is to see the end. -1: none.
void hang_up_in_copies(int socket);

/// A copy comes back from the user's function that a worker process had called: the caller, its ring
/// and what is noted of calls are another's. Says so on stderr, and ends the copy.
[[noreturn]] void end_copy(std::string_view function);

}  // namespace troupe::runtime
