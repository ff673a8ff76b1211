import Testing

@testable import PushCore

@Suite("Classes of bytes") struct HexTests {
  @Test("every byte at every place is judged as a single byte is", arguments: 1...17)
  func places(count: Int) {
    for place in 0..<count {
      for byte in UInt8.min ... .max {
        var text = [UInt8](repeating: UInt8(ascii: "f"), count: count)
        text[place] = byte
        let isLowerHex = Bytes.isHex(byte) && !(0x41...0x46).contains(byte)
        #expect(Bytes.areLowerHex(text.span) == isLowerHex, "byte \(byte) at \(place) of \(count)")
        // A token may have capital letters, which become small ones.
        let small = text.map { (0x41...0x46).contains($0) ? $0 | 0x20 : $0 }
        let token: Target? = Bytes.isHex(byte) && count % 2 == 0 ? .apns(token: small[...]) : nil
        #expect((try? Target.classify(Array("apns:".utf8) + text).get()) == token, "byte \(byte) at \(place) of \(count)")
      }
    }
  }

  @Test("every byte at every place of an FCM token is judged as a single byte is", arguments: [1, 15, 16, 17, 31, 32, 33])
  func placesInFCM(count: Int) {
    for place in 0..<count {
      for byte in UInt8.min ... .max {
        var text = [UInt8](repeating: UInt8(ascii: "_"), count: count)
        text[place] = byte
        #expect(Bytes.areUsualInFCM(text.span) == Bytes.isUsualInFCM(byte), "byte \(byte) at \(place) of \(count)")
      }
    }
  }
}
