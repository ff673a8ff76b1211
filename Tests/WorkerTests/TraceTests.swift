import Broker
import Foundation
import PushCore
import Testing
import Wire

@testable import Delivery

@Suite("The trace of requests")
struct TraceTests {
  private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test(
    "has all failures, and a limited number of others each second, the last quarter for waiting ones; the rest is counted"
  )
  func budget() throws {
    let recorder = TraceRecorder(perSecond: 8)
    #expect((0..<20).count { _ in recorder.admits(.success, at: time(1)) } == 6)
    #expect((0..<20).count { _ in recorder.admits(.other, at: time(1.9)) } == 2)
    #expect((0..<20).allSatisfy { _ in recorder.admits(.failure, at: time(1.9)) })
    #expect(recorder.counters.untraced == 32 && recorder.counters.untracedByRate == 32)
    #expect(recorder.admits(.success, at: time(2)))
    recorder.append { $0.append(contentsOf: "{}".utf8) }
    let (body, requests) = try #require(recorder.take())
    #expect(String(decoding: body, as: UTF8.self) == "{}\n{\"left_out\":32}\n" && requests == 1)
    #expect(recorder.take() == nil)
    recorder.isOn = false
    #expect(!recorder.admits(.failure, at: time(9)))
    recorder.confirmed(2)
    recorder.lost(3)
    #expect(recorder.counters.untracedByBroker == 4 && recorder.counters.traced == 2 && recorder.counters.untracedByRate == 32)
  }

  @Test("is bounded in memory if the broker accepts nothing")
  func bounded() {
    let recorder = TraceRecorder(perSecond: 100_000)
    var noted = 0
    for outcome in [TraceRecorder.Outcome.other, .failure] {
      for _ in 0..<25_000 where recorder.admits(outcome, at: time(1)) {
        recorder.append { $0.append(contentsOf: Array(repeating: 0x20, count: 400)) }
        noted += 1
      }
      #expect(recorder.lines.count >= (outcome == .other ? 1 << 19 : 1 << 20))
    }
    #expect(recorder.lines.count < 2 << 20 && recorder.counters.untraced == 50_000 - noted)
  }

  @Test("of a long list has some pushes, failed ones first")
  func pushes() {
    var trace = RequestTrace()
    for recipient in 0..<1_000 { trace.sent(recipient, at: time(2)) }
    for recipient in 0..<1_000 {
      let isRefused = recipient % 100 == 99
      trace.answered(
        recipient, .answered(status: isRefused ? 400 : 200), isRefused ? .invalidRegistration : nil, "", connection: 1,
        at: time(3))
    }
    #expect(trace.pushes.count == RequestTrace.mostPushes)
    #expect(Set(trace.pushes.filter { $0.error != nil }.map(\.recipient)) == Set(stride(from: 99, to: 1_000, by: 100)))
    trace = trace.emptied()
    #expect(trace.pushes.isEmpty)
  }

  @Test("shows the last attempt of a repeated push")
  func again() {
    var trace = RequestTrace()
    trace.sent(0, at: time(1))
    trace.answered(0, .notSent, .unknown, "unreachable", connection: 1, at: time(2))
    trace.sent(0, at: time(3))
    trace.answered(0, .answered(status: 200), nil, "", connection: 2, at: time(4))
    #expect(trace.pushes.map(\.connection) == [1, 2] && trace.pushes.last?.error == nil)
  }

  @Test("has one name for a token, in any letter case that the provider allows, and no part of the token")
  func names() {
    let token = Array(String(repeating: "0a", count: 32).utf8)[...]
    #expect(RequestTraceName.of(token) == RequestTraceName.of(token) && RequestTraceName.of(token).count == 36)
    #expect(RequestTraceName.of(token) != RequestTraceName.of(token.dropLast(2)))
  }
}
