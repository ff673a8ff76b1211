/// What a worker would send for a request.
public struct ExplainedRequest {
  /// True if it would send nothing to any platform, because the request itself is wrong.
  public var isRefused: Bool
  /// An array with an object for each platform; for a refused request an object with `error` and `reason`.
  public var json: [UInt8]

  public init(isRefused: Bool, json: [UInt8]) {
    self.isRefused = isRefused
    self.json = json
  }
}
