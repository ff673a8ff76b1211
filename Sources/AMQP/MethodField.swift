/// A field of a method in its wire form (AMQP 0-9-1 §4.2.5).
package protocol MethodField {
  func append(to output: inout [UInt8])
}

extension UInt8: MethodField {
  package func append(to output: inout [UInt8]) { output.append(self) }
}

extension UInt16: MethodField {}
extension UInt32: MethodField {}
extension UInt64: MethodField {}

extension MethodField where Self: FixedWidthInteger {
  @inline(__always)
  package func append(to output: inout [UInt8]) { output.appendBigEndian(self) }
}

/// A single bit.
extension Bool: MethodField {
  package func append(to output: inout [UInt8]) { output.append(self ? 1 : 0) }
}

/// A short string.
extension [UInt8]: MethodField {
  package func append(to output: inout [UInt8]) { output.appendShortString(self) }
}

extension String: MethodField {
  package func append(to output: inout [UInt8]) { output.appendShortString(Array(utf8)) }
}

package struct LongString: MethodField {
  private let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package func append(to output: inout [UInt8]) { output.appendLongString(bytes) }
}

extension FieldTable: MethodField {
  package func append(to output: inout [UInt8]) { output.appendLongString(encoded) }
}

extension [UInt8] {
  /// Appends the payload of a method frame.
  @inline(__always)
  package mutating func appendMethod<each Field: MethodField>(
    _ classID: UInt16, _ methodID: UInt16, _ fields: repeat each Field
  ) {
    appendBigEndian(classID)
    appendBigEndian(methodID)
    repeat (each fields).append(to: &self)
  }
}
