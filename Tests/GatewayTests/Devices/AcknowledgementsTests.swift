import Testing

@testable import Gateway

@Suite("Acknowledgements of devices by HTTP")
struct AcknowledgementsTests {
  @Test("are new ones if an idempotency key comes with another body")
  func occasions() {
    let (five, six) = (Array(#"{"badge":5}"#.utf8), Array(#"{"badge":6}"#.utf8))
    let (key, long) = (Array("k".utf8), [UInt8](repeating: 0x6B, count: 4_000))
    #expect(Acknowledgements.id(of: five, key: key) == Acknowledgements.id(of: five, key: key))
    #expect(Acknowledgements.id(of: five, key: key) != Acknowledgements.id(of: six, key: key))
    #expect(Acknowledgements.id(of: five, key: key) != Acknowledgements.id(of: five, key: long))
    #expect(Acknowledgements.id(of: five, key: long).count <= 255)
  }
}
