import Glibc

/// A numeric address with its port in the kernel's form.
struct SocketAddress: Sendable, CustomStringConvertible {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)

  init() {}

  init(_ info: addrinfo) {
    length = info.ai_addrlen
    withUnsafeMutableBytes(of: &storage) { target in
      target.copyMemory(from: UnsafeRawBufferPointer(start: info.ai_addr, count: Int(info.ai_addrlen)))
    }
  }

  var family: Int32 { Int32(storage.ss_family) }

  func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafeBytes(of: storage) { body($0.assumingMemoryBound(to: sockaddr.self).baseAddress!, length) }
  }

  static func filled(_ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) -> (
    Int32, SocketAddress
  ) {
    var address = SocketAddress()
    var length = address.length
    let result = withUnsafeMutableBytes(of: &address.storage) {
      body($0.assumingMemoryBound(to: sockaddr.self).baseAddress!, &length)
    }
    address.length = length
    return (result, address)
  }

  /// The address as an endpoint; `"?"` with port 0 for a Unix socket or an unknown family.
  var endpoint: Endpoint {
    var host = [CChar](repeating: 0, count: 1025)
    var port = [CChar](repeating: 0, count: 32)
    let code = withPointer { address, length in
      getnameinfo(
        address, length, &host, socklen_t(host.count), &port, socklen_t(port.count), NI_NUMERICHOST | NI_NUMERICSERV)
    }
    guard code == 0 else { return Endpoint(host: "?", port: 0) }
    return Endpoint(host: Self.text(host), port: UInt16(Self.text(port)) ?? 0)
  }

  var description: String { endpoint.description }

  private static func text(_ characters: [CChar]) -> String {
    String(decoding: characters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
