import Foundation
import Glibc
import TestSupport
import Testing

/// Clients that connect to the doors of the binary interface without a handshake.
@Suite("Connections without a handshake", .blocking)
struct SilentClientsTests {
  /// Silent connections.
  private static func silent(_ count: Int, _ port: UInt16) throws -> [Int32] {
    let probe = HTTPProbe(port: port)
    return try (0..<count).map { _ in try #require(probe.connection(seconds: 20)) }
  }

  @Test("keep out no client with a certificate, and replace no authenticated connection", arguments: [1, 2])
  func crowd(_ door: Int) throws {
    // Room for about three hundred connections of the binary interface, and fifty of its feedback service.
    let site = try CertifiedGateway(descriptors: 1_024)
    let sender = try site.client(1, "print('in', flush=True); link.recv(1); print('out')")
    #expect(sender.waitForOutput("in", seconds: 90))
    let crowd = try Self.silent(600, site.ports[door])
    defer { for descriptor in crowd { close(descriptor) } }
    for _ in 0..<3 { #expect(try site.shown(door).count == 64) }
    #expect(!sender.outputSoFar.contains("out"))
    // A stopping gateway waits for none of them.
    let began = ContinuousClock.now
    site.gateway.signal(SIGTERM)
    #expect(site.gateway.wait() == 0 && ContinuousClock.now - began < .seconds(15))
    #expect(sender.wait() == 0 && sender.outputSoFar.contains("out"))
  }

  @Test("cost a few kilobytes each")
  func memory() throws {
    _ = try DoorPatienceTests.mostDescriptors()
    let site = try CertifiedGateway()
    func resident() throws -> Int {
      let pages = try site.text("/proc/\(site.gateway.pid)/statm").split(separator: " ")[1]
      return try #require(Int(pages)) * Int(getpagesize())
    }
    #expect(try site.shown(1).count == 64)
    let before = try resident()
    let crowd = try Self.silent(1_500, site.ports[1])
    defer { for descriptor in crowd { close(descriptor) } }
    #expect(try site.shown(1).count == 64)
    #expect(try resident() - before < crowd.count * 8_192)
  }
}
