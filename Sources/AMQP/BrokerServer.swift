/// The product and version that a broker announces before authentication.
public struct BrokerServer: Sendable, Equatable {
  public var product: String
  public var version: String

  public init(product: String, version: String) {
    self.product = product
    self.version = version
  }

  /// - Parameter properties: the server properties of `connection.start`. A missing text becomes empty.
  init(_ properties: FieldTable) {
    func text(_ key: String) -> String {
      String(decoding: (properties.string(key) ?? []).prefix(Self.longest), as: UTF8.self)
    }
    product = text("product")
    version = text("version")
  }

  private static let longest = 100

  /// The first two numbers of the version, or nil if it doesn't begin with two numbers.
  public var release: (major: Int, minor: Int)? {
    let parts = version.split(separator: ".", maxSplits: 2).prefix(2).map { Int($0) }
    guard parts.count == 2, let major = parts[0], let minor = parts[1] else { return nil }
    return (major, minor)
  }
}
