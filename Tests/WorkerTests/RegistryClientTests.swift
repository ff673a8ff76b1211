import DeviceRegistry
import Logging
import Reactor
import Testing

@Suite("A shard's client of the registry")
struct RegistryClientTests {
  @Test("is writable again when the registry comes back, even if it lacked writes of some kind before")
  func comesBack() throws {
    let client = try RegistryClient(
      .sqlite(path: "/proc/nowhere/registry.db"), limits: RegistryLimits(), host: try EventLoop(), log: Log(level: .error))
    client.registryChanged(nil)
    #expect(client.isWritable)
    client.registryWritesChanged(.notes, .unavailable(.locked, "x"))
    #expect(client.isUp && !client.isWritable)
    client.registryChanged(.unavailable(.down, "x"))
    client.registryChanged(nil)
    #expect(client.isWritable)
  }
}
