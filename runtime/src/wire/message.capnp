@0xd2a6c6f0b9f4e1a7;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("troupe::wire");

# Every message that crosses a connection, one per frame. `docs/wire.md` draws who sends what to whom.
# A field is only ever added; a change of meaning raises the protocol number in handshake.hpp.

struct Message {
  union {
    hello @0 :Hello;              # handshake, both directions; see transport/handshake.hpp
    challenge @1 :Challenge;
    proof @2 :Proof;
    welcome @3 :Welcome;
    refusal @4 :Refusal;

    call @5 :Call;                # between two processes that run user code
    reply @6 :Reply;
    fetch @7 :Fetch;
    fetched @8 :Fetched;
    borrow @9 :Borrow;
    cancel @10 :UInt64;           # id of the call
    rendezvous @11 :RendezvousRequest;  # the rendezvous that rank 0 of a gang keeps
    rendezvoused @12 :RendezvousReply;

    headRequest @13 :HeadRequest; # from a process to the head; a worker process's go through its node
    headNotice @14 :HeadNotice;   # from the head to a process; a worker process's come through its node

    register @15 :RegisterDriver; # driver to head, first message
    registered @16 :Registered;

    nodeJoin @17 :NodeJoin;       # node to head
    nodeJoined @18 :NodeJoined;   # head to node
    processReady @19 :ProcessReady;
    processExited @20 :ProcessExited;
    startProcess @21 :StartProcess;
    stopProcess @22 :StopProcess;
    jobStarted @23 :JobStarted;
    jobEnded @24 :UInt64;
    relay @25 :Relay;             # node <-> head: an ask or a tell of one worker process
    shutdown @26 :Text;           # head to node or driver; why
    heartbeat @27 :UInt64;        # node or driver to head and back, unchanged

    workerConfig @28 :WorkerConfig;  # node to worker process, first message on the inherited socket

    programRequest @29 :ProgramRequest;  # node to driver's listener: bytes of the program, by offset
    programChunk @30 :ProgramChunk;

    adminRequest @31 :Text;       # JSON: {"do": "status"} or {"do": "stop"}
    adminReply @32 :Text;         # JSON

    channelOffer @33 :Void;       # process to process of one machine; docs/calls.md
    channelReady @34 :Text;       # empty: it is; else why not
    channelStart @35 :Void;

    objectCreate @36 :ObjectCreate;  # process to its node: the object store, see docs/store.md
    objectSeal @37 :ObjectSeal;
    objectGet @38 :ObjectGet;
    objectUnpin @39 :ObjectUnpin;
    objectFree @40 :ObjectFree;
    objectReturn @41 :ObjectReturn;
    objectCreated @42 :ObjectCreated;  # node to process
    objectGot @43 :ObjectGot;
    objectDeclined @44 :ObjectDeclined;
    objectKept @45 :ObjectExtent;    # of an object that it freed: its own to use again
    objectRecall @46 :ObjectRecall;
    objectAttach @47 :Void;          # process to its node: the arena's descriptor comes with the answer
    objectAttached @48 :ObjectAttached;

    transferRequest @49 :TransferRequest;  # to the node that has an object: its bytes follow, see transfer/chunks.hpp
    transferSentOn @50 :Address;           # the answer: ask that node
    transferRefused @51 :ObjectDeclined;   # the answer: it is not had here, or cannot be sent
    transferWait @52 :Void;                # the answer comes later: it is read from the disk, or on its way here
    transferFree @53 :TransferFree;        # to where it was written, and from there to those that have copies
    ownerWatch @54 :UInt64;                # node to head, once a process: objects of it lie here, and it runs elsewhere
    ownerEnded @55 :UInt64;                # head to node: it has ended
    storeUsage @56 :StoreUsage;            # node to head, behind a heartbeat: it is not what it was
    transferFreed @57 :UInt64;             # the answer to transferFree: those of this connection up to that number are done
    orphaned @58 :Orphans;                 # node to head: for a process that is not attached to this node
    nodeWatch @59 :UInt32;                 # node to head: that node cannot be told what was freed
    nodeEnded @60 :UInt32;                 # head to node: it has ended
    nodeLost @61 :NodeLost;                # head to every node and driver; a node tells its processes

    streamStart @62 :StreamStart;    # process to process, as the next four; docs/streams.md
    streamAck @63 :UInt64;           # so many messages of the receiver's stream have arrived; between a node and its head, too
    skip @64 :Void;                  # stands in the stream for a message that was given up
    channelEnd @65 :Void;            # the rings between the two are used no more

    workerOutput @66 :WorkerOutput;  # node to head, and on to the driver of that job: what its worker processes print
    outputFlush @67 :UInt64;         # driver to head, and on to the nodes of that job: to send now what there is of it
    outputFlushed @68 :UInt64;       # the answer, behind that output
    logRequest @69 :LogRequest;      # head to node: what `troupe logs`, `timeline` and `list objects` ask for
    logReply @70 :LogReply;          # the answer

    nodeStoodStill @71 :UInt32;      # node to head: for so many milliseconds, as its process was stopped or its machine paused

    nodeResume @72 :NodeResume;      # node to head, first message: its connection to the head broke, and this one takes its place
    nodeResumed @73 :UInt64;         # the answer: so many messages of the node the head has had. Else a shutdown: why not
    nodeLeaves @74 :Void;            # node to head, last message: it has stopped, and does not come back
  }
}

# ---- handshake -------------------------------------------------------------------------------------------------
enum Role { node @0; driver @1; admin @2; process @3; head @4; }

struct Hello {
  protocolMin @0 :UInt16;
  protocolMax @1 :UInt16;
  role @2 :Role;
  cluster @3 :Text;     # empty: whichever answers
  job @4 :UInt64;       # role process: proves the key of this job instead of the token
  process @5 :UInt64;   # role process: who is calling
  nonce @6 :Data;       # 32 bytes
  version @7 :Text;     # of the software, for messages only
  subject @8 :UInt64;   # role process: the process that the caller means to reach
}
struct Challenge {
  protocol @0 :UInt16;    # the highest that both speak
  cluster @1 :Text;
  nonce @2 :Data;         # 32 bytes
  proof @3 :Data;         # 32 bytes
  version @4 :Text;
  protocolMin @5 :UInt16;
  protocolMax @6 :UInt16;
  keyId @7 :Text;         # 8 hexadecimal digits that tell keys apart, for messages only
}
struct Proof { proof @0 :Data; }
struct Welcome {}
struct Refusal {
  reason @0 :Text;        # "protocol", "cluster", "token", "key"; else `text` says all
  mine @1 :Text;          # of the side that refuses
  yours @2 :Text;         # of the side that is refused
  text @3 :Text;
}

# ---- shared pieces ---------------------------------------------------------------------------------------------
struct Address {
  process @0 :UInt64;
  node @1 :UInt32;      # 0: a driver
  host @2 :Text;        # TCP
  port @3 :UInt16;
  unixName @4 :Text;    # abstract unix socket
  machine @5 :Text;     # boot id and network namespace: where equal, the unix socket is reachable
}
struct RefWire { object @0 :UInt64; owner @1 :Address; }
struct Payload {
  data @0 :Data;
  refs @1 :List(RefWire);
  stored @2 :Stored;    # in place of data: it lies in an object store
}
struct Stored {
  object @0 :ObjectKey;
  bytes @1 :UInt64;
  owner @2 :UInt64;     # the process that will free it
  at @3 :Address;       # the store of the node that it was written on; process 0
}
struct Amount { name @0 :Text; units @1 :Float64; }
struct Failure {
  kind @0 :UInt16;      # troupe::Failure::Kind
  message @1 :Text;
  type @2 :Text;
  where @3 :Text;
  signal @4 :Int32;
  exitCode @5 :Int32;
}
struct Function { name @0 :UInt64; offset @1 :UInt64; label @2 :Text; }
struct Outcome { union { value @0 :Payload; failure @1 :Failure; } }

# ---- process <-> process ---------------------------------------------------------------------------------------
struct StreamStart {
  number @0 :UInt64;           # ascends with each connection that the sender uses for its stream
  from @1 :UInt64;             # the place in the stream of the first message that follows; the first ever has 1
  received @2 :UInt64;         # as a streamAck, in front of all that may be queued: of the stream in the other direction
}
struct Call {
  id @0 :UInt64;
  kind @1 :UInt8;              # 0 task, 1 constructor, 2 method
  function @2 :Function;
  args @3 :List(Payload);
  caller @4 :Address;
  gang @5 :GangInfo;           # constructor of a gang's rank
  lease @6 :UInt64;            # task: the lease it runs under
  attempt @7 :UInt32;
  byValue @9 :Bool;            # its caller is of another job: no object store and no refs in arguments and outcome
  givenUp @8 :Bool;            # its caller has been told that it failed: it does not run, and its refs are dropped
  called @10 :UInt64;          # when, by the clock on its caller's wall: nanoseconds since 1970; 0: not said
}
struct Reply {
  id @0 :UInt64;
  outcome @1 :Outcome;
  runNs @2 :UInt64;            # how long it ran; 0: it did not
}
struct Fetch { id @0 :UInt64; object @1 :UInt64; }
struct Fetched { id @0 :UInt64; outcome @1 :Outcome; }
struct Borrow { object @0 :UInt64; process @1 :UInt64; delta @2 :Int64; }
struct RendezvousRequest {
  id @0 :UInt64;
  gang @1 :UInt64;
  key @2 :Text;
  action @3 :UInt8;            # troupe::runtime::RendezvousRequest::Action
  value @4 :Data;
  count @5 :UInt64;
  timeoutMs @6 :UInt32;        # after which who asks has gone
}
struct RendezvousReply { id @0 :UInt64; union { value @1 :Data; failure @2 :Failure; } }
struct GangInfo {
  gang @0 :UInt64;
  rank @1 :UInt32;
  members @2 :List(Member);
}
struct Member { process @0 :Address; localRank @1 :UInt32; nodeRank @2 :UInt32; gpus @3 :List(UInt32); }

# ---- process -> head -------------------------------------------------------------------------------------------
struct Request {              # what a lease, an actor or each rank of a gang needs
  resources @0 :List(Amount);
  labels @1 :List(Label);
  spread @2 :Bool;
}
struct Label { key @0 :Text; value @1 :Text; }
struct HeadRequest {
  id @0 :UInt64;              # answered by a HeadNotice with the same id
  union {
    lease @1 :Request;
    leaseReturn @2 :UInt64;
    withdraw @3 :UInt64;      # the id of a HeadRequest that is not answered and not wanted any more
    actor @4 :ActorAsk;
    actorKill @5 :UInt64;
    actorFind @6 :ActorFind;
    gang @7 :GangAsk;
    gangRelease @8 :UInt64;
    blocked @9 :Void;         # the running task or method waits: its CPU may go to others
    unblocked @10 :Void;      # answered by `resumed`
    fate @11 :UInt64;         # how a process died; answered once it is known
    store @12 :Text;          # a node's object store on this machine; answered by its address, or one without a unix name
    nodeEnd @13 :UInt32;      # answered by `done` once that node has ended
    actorMade @15 :UInt64;    # a detached actor is constructed: from now on it lives without its maker; answered by `done`
    resourcesReturned @16 :Void; # the actor of the asker needs nothing any more of what it asked for; not answered
    ended @17 :Text;          # the detached actor of the asker has done what it was made for, and how: kept beside its name; not answered
    valuesHeld @14 :Bool;     # others have refs of values that the asker owns, or have none any more; not answered
  }
}
struct ActorAsk {
  request @0 :Request;
  name @1 :Text;
  type @2 :Text;
  actor @3 :UInt64;           # ids are made by who asks
  detached @4 :Bool;          # in a job of its own
}
struct ActorFind {
  union { id @0 :UInt64; name @1 :Text; }
  type @2 :Text;
  now @3 :Bool;               # what cannot be called yet is not waited for: a failure of kind TimedOut
}
struct GangAsk {
  size @0 :UInt32;
  each @1 :Request;
  strategy @2 :UInt8;
  name @3 :Text;
  gang @4 :UInt64;
  awaited @5 :Bool;  # its caller does nothing else meanwhile
}

# ---- head -> process -------------------------------------------------------------------------------------------
struct HeadNotice {
  id @0 :UInt64;              # of the HeadRequest it answers; 0: unasked
  union {
    lease @1 :LeaseGrant;
    refused @2 :Failure;
    leaseRecalled @3 :UInt64; # finish the running task, then give the lease back
    leaseLost @4 :Lost;
    actor @5 :ActorGrant;
    actorLost @6 :Lost;
    gang @7 :GangGrant;
    gangBroken @8 :GangBroken;
    resumed @9 :Void;
    fate @10 :Failure;
    done @11 :Void;
    store @12 :Address;
    stillWaits @13 :Text;     # to a driver: what of its job has waited for long, and why; a line for people
    orphans @14 :Orphans;     # written for this process on another node than its own: as those of an ObjectRecall
  }
  replies @16 :List(Reply);   # of the same process, beside calls: to who is told, which may have had some of them
  calls @15 :CallsSeen;       # of the process whose end a fate, leaseLost, actorLost or gangBroken tells: those of who is told
}
struct CallsSeen {            # of one caller, through its socket: their ids ascend
  known @0 :Bool;             # else nobody can say
  begun @1 :UInt64;           # the last one whose user code was begun; 0: none
  finished @2 :UInt64;        # the last one whose user code returned
  caller @3 :UInt64;          # where several are listed
}
struct LeaseGrant { lease @0 :UInt64; process @1 :Address; }
struct ActorGrant {
  actor @0 :UInt64;
  process @1 :Address;
  type @2 :Text;
  job @3 :UInt32;             # of a detached actor: as a process of that job it is called; 0: of the asker's own
  jobKey @4 :Data;            # then
}
struct GangGrant { gang @0 :UInt64; members @1 :List(Member); }
struct Lost { id @0 :UInt64; failure @1 :Failure; }
struct GangBroken { gang @0 :UInt64; rank @1 :UInt32; failure @2 :Failure; }

# ---- driver <-> head -------------------------------------------------------------------------------------------
struct Program {
  path @0 :Text;              # absolute, on the driver's machine
  machine @1 :Text;           # boot id and mount namespace: where equal, the path is readable in place
  device @2 :UInt64;          # with inode, size and mtime: is it still the same file
  inode @3 :UInt64;
  size @4 :UInt64;
  mtimeNs @5 :UInt64;
  sha256 @6 :Data;            # 32 bytes; empty until a node of another machine asks for it
  arguments @7 :List(Text);   # argv of the driver
  directory @8 :Text;         # its working directory
  atCommandLine @9 :Bool;     # whoever runs it calls no C++ API: it is `troupe` itself
}
struct WorkerOutput {
  job @0 :UInt64;
  processes @1 :List(ProcessOutput);
  node @2 :UInt32;            # this and what follows is filled in by the head
  nodeName @3 :Text;
  leftOut @4 :UInt64;         # bytes that the head dropped before these, since the driver did not take them
}
struct ProcessOutput {
  process @0 :UInt64;
  pid @1 :UInt32;
  label @2 :Text;             # what ran there as it was printed: a function, an actor's type, a rank; empty: not known
  lines @3 :Data;             # whole lines, each with its end
  leftOut @4 :UInt64;         # bytes before these that were left out: there were too many in a second
  log @5 :Text;               # where some were left out: the file on that node which has all
}
struct RegisterDriver {
  program @0 :Program;
  address @1 :Address;
  pid @2 :UInt32;
  name @3 :Text;
  weight @4 :Float64 = 1;     # of its job, beside others
  workerOutput @5 :Bool;      # it wants to be sent what its worker processes print
}
struct Registered { job @0 :UInt64; process @1 :UInt64; cluster @2 :Text; }

# ---- node <-> head ---------------------------------------------------------------------------------------------
struct NodeJoin {
  name @0 :Text;              # host name
  host @1 :Text;              # where its processes listen
  resources @2 :List(Amount);
  gpus @3 :List(Gpu);
  labels @4 :List(Label);
  machine @5 :Text;
  pid @6 :UInt32;
  store @7 :Address;          # its object store
  logs @8 :Text;              # the folder of its processes' log files; empty: they have none
  offersAllCpus @9 :Bool;     # of its machine
  resumes @10 :Bool;          # it connects again where its connection breaks, and acknowledges what it is sent
}
struct NodeResume {
  node @0 :UInt32;
  incarnation @1 :UInt64;
  secret @2 :Data;            # as nodeJoined gave it
  received @3 :UInt64;        # so many messages of the head the node has had, as it counts them from nodeJoined on
}
struct Gpu { index @0 :UInt32; uuid @1 :Text; name @2 :Text; memoryBytes @3 :UInt64; }
struct NodeJoined {
  node @0 :UInt32;
  incarnation @1 :UInt64;
  cluster @2 :Text;
  note @3 :Text;              # for who started it; empty: none
  secret @4 :Data;            # for nodeResume; empty: the node is lost with its connection
}
struct StartProcess {
  process @0 :UInt64;
  job @1 :UInt64;             # announced by an earlier jobStarted on this connection
  gpus @2 :List(UInt32);      # becomes CUDA_VISIBLE_DEVICES; empty list: no GPU is visible
  threads @3 :UInt32 = 1;     # that libraries may use in it
}
struct StopProcess { process @0 :UInt64; why @1 :Text; }
struct JobStarted { job @0 :UInt64; program @1 :Program; driver @2 :Address; workerOutput @3 :Bool; }
struct ProcessReady { process @0 :UInt64; address @1 :Address; pid @2 :UInt32; }
struct ProcessExited {        # also where it could not be started
  process @0 :UInt64;
  failure @1 :Failure;
  callers @2 :List(CallsSeen);
  callersKnown @3 :Bool;      # who is not listed has had nothing begun
  replies @4 :List(KeptReply);
}
struct KeptReply { caller @0 :UInt64; reply @1 :Reply; }  # its caller may not have had it; a plain value or a failure
struct NodeLost {
  node @0 :UInt32;
  what @1 :Text;              # became of each of its processes: "was lost with node 2 (far at 10.0.0.2): ..."
  processes @2 :List(UInt64);
}
struct LogRequest {
  id @0 :UInt64;
  job @1 :UInt64;             # 0: of any
  process @2 :UInt64;         # 0: of all that the job has had there
  known @3 :List(LogPlace);   # where to go on in each file; others from their beginning
  follows @5 :Bool;           # lines without an end are left for the next time, while their process runs
  most @4 :UInt64;            # bytes of all files together: of a file without a place, the last ones
  calls @6 :Bool;             # not what they have printed but what they have run: each part is a CallTrace
  after @7 :UInt64;           # of calls: only processes with higher numbers
  running @9 :Bool;           # of calls: only those that are under way, and no files
  objects @8 :Bool;           # not of processes: the `most` largest objects that the node's store holds
}
struct LogPlace { process @0 :UInt64; offset @1 :UInt64; }
struct LogReply {
  id @0 :UInt64;
  parts @1 :List(LogPart);
  clock @2 :UInt64;           # the node's, on the wall, as it answers: nanoseconds since 1970
  objects @3 :List(HeldObject); # the largest first
  objectsInAll @4 :UInt64;    # that the store holds
}
struct HeldObject {
  object @0 :ObjectKey;
  job @1 :UInt64;
  owner @2 :UInt64;           # the process that will free it
  bytes @3 :UInt64;
  state @4 :UInt8;            # troupe::store::ObjectView::State
  isCopy @5 :Bool;            # of an object of another node
  pinnedBy @6 :List(UInt64);  # processes, the first 16; 0: the node itself
}
struct CallTrace {            # also a file, beside the logs; troupe::runtime::CallTrace
  magic @0 :UInt64;
  job @1 :UInt64;
  process @2 :UInt64;
  pid @3 :Int32;
  node @4 :UInt32;
  nodeName @5 :Text;
  role @6 :Text;
  read @7 :UInt64;
  ended @8 :Bool;
  overwritten @9 :UInt64;
  names @10 :List(Text);
  spans @11 :List(Span);
  struct Span {
    begin @0 :UInt64;
    end @1 :UInt64;
    called @2 :UInt64;
    caller @3 :UInt64;
    name @4 :UInt32;
    kind @5 :UInt8;
    failed @6 :Bool;
    byOwnClock @7 :Bool;
  }
}
struct LogPart {
  job @0 :UInt64;
  process @1 :UInt64;
  file @2 :Text;
  text @3 :Data;
  next @4 :UInt64;            # the place behind the text
  more @5 :Bool;              # there is more behind it now
}
struct Relay { process @0 :UInt64; union { request @1 :HeadRequest; notice @2 :HeadNotice; } }

# ---- node -> worker process ------------------------------------------------------------------------------------
struct WorkerConfig {
  process @0 :UInt64;
  job @1 :UInt64;
  jobKey @2 :Data;            # 32 bytes: proves membership of the job, not of the cluster
  cluster @3 :Text;
  node @4 :UInt32;
  host @5 :Text;              # where to listen for TCP
  machine @6 :Text;
  threads @7 :UInt32 = 1;     # that libraries may use
}

struct ProgramRequest { job @0 :UInt64; offset @1 :UInt64; }   # offset 2^64-1: only the digest
struct ProgramChunk { offset @0 :UInt64; data @1 :Data; sha256 @2 :Data; failure @3 :Text; }

# ---- process <-> its node: the object store --------------------------------------------------------------------
struct ObjectKey { process @0 :UInt64; number @1 :UInt64; }
struct ObjectExtent { offset @0 :UInt64; bytes @1 :UInt64; }
struct ObjectCreate {
  request @0 :UInt64;
  object @1 :ObjectKey;
  owner @2 :UInt64;           # the process that will free it
  bytes @3 :UInt64;
  kept @4 :Bool;              # in memory that the process keeps, at `offset`; not answered
  offset @5 :UInt64;
}
struct ObjectSeal { object @0 :ObjectKey; pin @1 :Bool; }
struct ObjectGet {
  request @0 :UInt64;
  object @1 :ObjectKey;
  bytes @2 :UInt64;           # what follows is used where this node does not have it: to bring it here
  owner @3 :UInt64;
  at @4 :Address;             # the store of the node that it was written on
}
struct ObjectUnpin { object @0 :ObjectKey; count @1 :UInt32; }
struct ObjectFree {
  object @0 :ObjectKey;
  keep @1 :Bool;
  at @2 :Address;             # where it was written, if that is another node: told by this one
}
struct ObjectAttached {
  failure @0 :Text;           # empty: a descriptor has come
  store @1 :Address;          # this node's, for other nodes; process 0
}
struct ObjectReturn {
  round @0 :UInt64;           # of the recall that it answers
  offsets @1 :List(UInt64);   # of memory that the process kept
}
struct ObjectCreated { request @0 :UInt64; extent @1 :ObjectExtent; warm @2 :Bool; }
struct ObjectGot { request @0 :UInt64; extent @1 :ObjectExtent; bytes @2 :UInt64; }
struct ObjectDeclined {
  request @0 :UInt64;
  kind @1 :UInt16;            # troupe::store::Refusal::Kind
  message @2 :Text;
}
struct ObjectRecall {
  round @0 :UInt64;           # to be answered by objectReturn; 0: no answer is wanted
  union {
    all @1 :Void;             # memory that is kept, views that nobody uses
    freed @2 :ObjectKey;      # the view of this object
    orphans @3 :List(ObjectKey);  # written for this process by one that has ended: it frees what it was never told of
  }
}
struct Orphans {              # what a process that has ended wrote for another one, and may not have told it of
  owner @0 :UInt64;           # for whom
  writer @1 :UInt64;
  numbers @2 :List(UInt64);   # of the writer's objects
  at @3 :Address;             # the store of its node; filled in by the head
}
struct StoreUsage {           # in bytes, of one node
  capacity @0 :UInt64;
  used @1 :UInt64;            # by objects in memory
  pinned @2 :UInt64;          # of these
  kept @3 :UInt64;            # by processes, for their next objects
  spilled @4 :UInt64;         # on the disk
  objects @5 :UInt64;
}

# ---- node <-> node: objects ------------------------------------------------------------------------------------
struct TransferRequest {
  object @0 :ObjectKey;
  job @1 :UInt64;
  bytes @2 :UInt64;           # that the whole object has
  from @3 :UInt64;            # the first byte that is wanted
  receiver @4 :Address;       # the store that will have it too; node 0: none will
  failed @5 :UInt32;          # the node that it was sent on to, and that did not have it or has ended; 0: none
}
struct TransferFree {
  job @0 :UInt64;
  object @1 :ObjectKey;
  number @2 :UInt64;          # from 1 on, ascends; answered by transferFreed
}
