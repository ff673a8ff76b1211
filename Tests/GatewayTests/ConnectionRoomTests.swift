import Testing

@testable import Gateway

@Suite("Connections that the doors may have")
struct ConnectionRoomTests {
  @Test("are bounded by what the process may open, the doors together")
  func bounds() {
    for descriptors in [0, 100, 1_024, 16_384, 65_536, .max] {
      let room = ConnectionRoom(descriptors: descriptors, isShared: true)
      #expect(room.http + room.binary <= max(descriptors - 512, 64) && room.http >= 16 && room.binary >= 48)
    }
    #expect(ConnectionRoom(descriptors: 1_024, isShared: false).http == 512)
    #expect(ConnectionRoom(descriptors: .max, isShared: true).http == 4_096)
    #expect(ConnectionRoom(descriptors: .max, isShared: true).binary == 20_000)
  }
}
