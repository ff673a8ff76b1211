import CNGHTTP2

/// What nghttp2 is told of a request's header list: enough to know that it is a POST, in three bytes of its static table. The
/// list itself is compressed by a `HeaderCompressor` and takes the outline's place when the request is framed.
final class RequestOutline {
  let fields: UnsafeMutablePointer<nghttp2_nv>
  let count = 3

  init() {
    fields = .allocate(capacity: count)
    set(0, ":method", "POST")
    set(1, ":scheme", "https")
    set(2, ":path", "/")
  }

  deinit { fields.deallocate() }

  private func set(_ index: Int, _ name: StaticString, _ value: StaticString) {
    fields.advanced(by: index).initialize(
      to: nghttp2_nv(
        name: UnsafeMutablePointer(mutating: name.utf8Start), value: UnsafeMutablePointer(mutating: value.utf8Start),
        namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount,
        flags: UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)))
  }
}
