import Testing

@testable import PushCore

@Suite("Plain bytes of JSON strings") struct PlainBytesTests {
  @Test("the first byte that isn't plain is found at every place, whatever the byte", arguments: 1...35)
  func places(count: Int) {
    for place in 0..<count {
      for byte in UInt8.min ... .max {
        var text = [UInt8](repeating: UInt8(ascii: "~"), count: count)
        text[place] = byte
        let isPlain = (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
        #expect(Bytes.endOfPlain(text.span, from: 0) == (isPlain ? count : place), "byte \(byte) at \(place) of \(count)")
        #expect(Bytes.endOfPlain(text.span, from: place) == (isPlain ? count : place), "byte \(byte) from \(place) of \(count)")
      }
    }
  }
}
