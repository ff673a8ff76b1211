/// What a broker says of itself before it lets anybody in.
public struct BrokerServer: Sendable, Equatable {
  /// `RabbitMQ`.
  public var product: String
  /// `3.10.8`.
  public var version: String

  public init(product: String, version: String) {
    self.product = product
    self.version = version
  }

  /// - Parameter properties: `connection.start`'s; what is missing there is empty here.
  init(_ properties: FieldTable) {
    func text(_ key: String) -> String {
      String(decoding: (properties.string(key) ?? []).prefix(Self.longest), as: UTF8.self)
    }
    product = text("product")
    version = text("version")
  }

  private static let longest = 100

  /// The first two numbers of the version; nil where it doesn't begin with any.
  public var release: (major: Int, minor: Int)? {
    let parts = version.split(separator: ".", maxSplits: 2).prefix(2).map { Int($0) }
    guard parts.count == 2, let major = parts[0], let minor = parts[1] else { return nil }
    return (major, minor)
  }
}
