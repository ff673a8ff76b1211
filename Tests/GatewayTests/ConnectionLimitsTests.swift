import Testing

@testable import Gateway

@Suite("The connections of the gateway's doors")
struct ConnectionLimitsTests {
  @Test("are limited by the process's open files, for all doors together, new connections included")
  func bounds() {
    for descriptors in [0, 100, 1_024, 16_384, 65_536, .max] {
      let room = ConnectionLimits(descriptors: descriptors, http: true, binary: true, feedback: true)
      let passing = 128 + 3 * 64
      #expect(room.http + room.binary + room.readers + room.arrivals <= max(descriptors - 384 - passing, 64))
      #expect(room.http >= 16 && room.binary >= 36 && room.readers >= 6 && room.arrivals >= 6)
    }
    #expect(ConnectionLimits(descriptors: 1_024, http: true).http == 512)
    #expect(ConnectionLimits(descriptors: 1_024, binary: true).binary == 392)
    #expect(ConnectionLimits(descriptors: 1_024, binary: true, feedback: true).binary == 336)
    let whole = ConnectionLimits(descriptors: .max, http: true, binary: true, feedback: true)
    #expect(whole.http == 4_096 && whole.binary == 20_000 && whole.readers == 1_000 && whole.arrivals == 2_000)
    #expect(ConnectionLimits(descriptors: .max, http: true, binary: true).readers == 0)
  }
}
