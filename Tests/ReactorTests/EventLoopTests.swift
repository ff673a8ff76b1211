import Glibc
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite(.serialized) struct EventLoopTests {
  private final class Hook: TurnHook {
    var times: [MonotonicTime] = []
    func turnEnding(at now: MonotonicTime) { times.append(now) }
  }

  @Test("letters of several threads all arrive, each thread's in its order, and the loop stops when told")
  func mailbox() throws {
    let loop = try EventLoop()
    let mailbox = loop.mailbox
    nonisolated(unsafe) var seen: [[Int]] = [[], [], []]
    let remaining = Mutex(3)
    let threads = try (0..<3).map { thread in
      try startThread(named: "poster \(thread)") {
        for number in 0..<2000 { mailbox.post { _ in seen[thread].append(number) } }
        if remaining.withLock({
          $0 -= 1; return $0 == 0
        }) {
          mailbox.post { $0.stop() }
        }
      }
    }
    loop.run()
    for thread in threads { thread.join() }
    #expect(seen == [[Int]](repeating: Array(0..<2000), count: 3))
  }

  @Test("a letter that posts another one does not starve the turn")
  func boundedMail() throws {
    let loop = try EventLoop()
    nonisolated(unsafe) var count = 0
    @Sendable func again(_ loop: EventLoop) {
      count += 1
      loop.mailbox.post(again)
    }
    loop.mailbox.post(again)
    loop.turn(waitingAtMost: 0)
    #expect(count == 1)
    loop.turn(waitingAtMost: 0)
    #expect(count == 2)
  }

  @Test("posting to a loop that is gone does nothing")
  func deadMailbox() throws {
    let mailbox: Mailbox
    do { mailbox = try EventLoop().mailbox }
    #expect(!mailbox.post { _ in })
  }

  @Test("hooks run once a turn, after timers, and are let go of with their owner")
  func hooks() throws {
    let loop = try EventLoop()
    var hook: Hook? = Hook()
    loop.afterEvents(hook!)
    var isTimerBefore = false
    loop.schedule(after: 0) { isTimerBefore = hook!.times.isEmpty }
    loop.turn(waitingAtMost: 0)
    #expect(isTimerBefore)
    #expect(hook!.times == [loop.now])
    weak let weakHook = hook
    hook = nil
    loop.turn(waitingAtMost: 0)
    #expect(weakHook == nil)
  }

  @Test("the clocks move and a timer is never early")
  func timer() throws {
    let loop = try EventLoop()
    let start = loop.now
    var fired: MonotonicTime?
    loop.schedule(after: 0.0105) { fired = loop.now }
    let cancelled = loop.schedule(after: 0.005) { Issue.record("a cancelled timer fired") }
    loop.cancel(cancelled)
    #expect(loop.run { fired != nil })
    #expect(fired!.seconds(since: start) >= 0.0105)
    #expect(loop.wallClock > 1_700_000_000_000)
  }

  @Test("an event of a descriptor closed earlier in the turn does not reach the next owner of its slot")
  func staleEvent() throws {
    final class Source: EventSource {
      var onReady: () -> Void = {}
      var calls = 0
      func ready(_ readiness: Readiness) {
        calls += 1
        onReady()
      }
    }
    let loop = try EventLoop()
    let pipes = try (0..<3).map { _ in
      var ends: [Int32] = [0, 0]
      try #require(pipe(&ends) == 0)
      return ends
    }
    defer { for ends in pipes { for end in ends { close(end) } } }
    let (first, second, newcomer) = (Source(), Source(), Source())
    var watches: [Watch] = []
    watches.append(try loop.watch(pipes[0][0], .input, first))
    watches.append(try loop.watch(pipes[1][0], .input, second))
    // Whichever comes first takes the other's place away and gives it to a newcomer that has nothing to read.
    func replace(_ victim: Int) {
      loop.unwatch(watches[victim], pipes[victim][0])
      _ = try? loop.watch(pipes[2][0], .input, newcomer)
    }
    first.onReady = { if second.calls == 0 { replace(1) } }
    second.onReady = { if first.calls == 0 { replace(0) } }
    for ends in pipes[..<2] { _ = write(ends[1], "x", 1) }
    loop.turn(waitingAtMost: 1)
    (first.onReady, second.onReady) = ({}, {})
    #expect(first.calls + second.calls == 1)
    #expect(newcomer.calls == 0)
  }

  private var isBlocked: Bool {
    var mask = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &mask)
    return sigismember(&mask, SIGUSR2) == 1
  }

  @Test("a signal becomes an event of the loop, and afterwards what it was before")
  func signals() throws {
    let loop = try EventLoop()
    var seen: [Int32] = []
    // The threads of the test process may have it blocked, or not.
    var ours = sigset_t()
    sigemptyset(&ours)
    sigaddset(&ours, SIGUSR2)
    pthread_sigmask(SIG_UNBLOCK, &ours, nil)
    let signals = try Signals(loop: loop, [SIGUSR2]) { seen.append($0) }
    // To this thread, whose mask has it blocked: other threads of the test process have not.
    pthread_kill(pthread_self(), SIGUSR2)
    #expect(loop.run { !seen.isEmpty })
    #expect(seen == [SIGUSR2] && isBlocked)
    signals.close()
    #expect(!isBlocked)
    #expect(loop.owned.count == 0)
  }

  @Test("a process can read its own usage")
  func usage() {
    let usage = ProcessUsage.current()
    #expect(usage.cpuSeconds > 0)
    #expect(usage.residentBytes > 1 << 20)
    #expect(usage.descriptorLimit > 0)
    let now = Double(SystemClock.unixMilliseconds) / 1_000
    #expect(usage.startTime <= now && usage.startTime > now - 86_400)
  }
}
