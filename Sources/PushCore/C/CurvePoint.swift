import COpenSSL

/// The curve P-256 (FIPS 186-5, `prime256v1`).
enum CurvePoint {
  /// True if the bytes are an uncompressed point of the curve other than infinity: 65 bytes, the first 4 (SEC 1 §2.3.3).
  static func isValid(_ bytes: [UInt8]) -> Bool {
    guard bytes.count == 65, bytes[0] == 4 else { return false }
    // A read-only object, so threads may share it.
    guard let curve = unsafe curve, let point = unsafe EC_POINT_new(curve) else { return false }
    defer { unsafe EC_POINT_free(point) }
    // Fails if the point isn't on the curve.
    let isOnCurve = unsafe EC_POINT_oct2point(curve, point, bytes, bytes.count, nil) == 1
    if !isOnCurve { ERR_clear_error() }
    return isOnCurve
  }

  private nonisolated(unsafe) static let curve = unsafe EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1)
}
