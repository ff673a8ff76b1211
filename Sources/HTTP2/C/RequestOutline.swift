import CNGHTTP2

/// The header list that nghttp2 gets for each request: three bytes of its static table that say "POST". When the request is
/// framed, the block of a `HeaderCompressor` replaces it.
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
