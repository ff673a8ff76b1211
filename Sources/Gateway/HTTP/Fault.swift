import DeviceRegistry
import PushCore
import StatusHTTP

/// Why a request is refused, for all HTTP interfaces.
struct Fault: Error, Equatable {
  let status: Int
  let words: String
  /// `Retry-After` is in whole seconds, because old clients can't read dates. Only for statuses that ask for a repeat: with the
  /// header, old clients repeat any request.
  var headers: [String: String] = [:]

  static let badTarget = Fault(status: 400, words: "the path can't be read")
  static let noKey = Fault(
    status: 401, words: "the header Authorization is missing, or is neither key=KEY nor Bearer KEY")
  static let wrongKey = Fault(status: 401, words: "the key is not valid")
  /// A request with the console's cookie, but without its header: another site's page may have made it.
  static let foreign = Fault(status: 403, words: "the header X-Pushfleet-Console is missing")
  static let noSuchPlace = Fault(status: 404, words: "there is nothing here")
  static let badEncoding = Fault(status: 415, words: "the body must not be compressed")
  /// An `Idempotency-Key` that came with another body before.
  static let reused = Fault(status: 422, words: "this Idempotency-Key came with another body before")
  static let tooMany = Fault(status: 429, words: "too many requests with this key or secret", headers: ["Retry-After": "1"])
  /// A token request without an assertion.
  static let badGrant = Fault(status: 400, words: "grant_type: expected \(Assertion.grantType)")

  static func badRequest(_ reason: String) -> Fault { Fault(status: 400, words: reason) }

  /// The key is valid, but not for this application or operation; the text names the missing right or application.
  static func notAllowed(_ reason: String) -> Fault { Fault(status: 403, words: reason) }

  static func wrongMethod(_ method: String, allowed: String) -> Fault {
    let shown = method.filter { $0.isASCII && $0.isLetter }.prefix(16)
    return Fault(
      status: 405, words: "HTTP method \(shown) is not supported by this URL", headers: ["Allow": allowed])
  }

  /// The caller may try again later.
  static func unavailable(_ reason: String) -> Fault { Fault(status: 503, words: reason, headers: ["Retry-After": "5"]) }

  static let foreignApp = Fault.notAllowed(
    "the key is not for this application, or it isn't configured; `pushfleet keys create --app` makes a key")
  static let notAllApps = Fault.notAllowed("the request needs a key for all applications")
  static let noApp = Fault.notAllowed("the key is for some applications, so the request has to name one of them")
  static let noGroup = Fault.notAllowed("the user is in none of the groups that gateway.http.login names")
  static let notBackend = Fault.notAllowed("the request needs a backend's key; the secret of a device isn't enough")

  /// - Parameter rights: a key needs one of them.
  static func noRight(_ rights: Set<KeyRight>) -> Fault {
    let names = KeyRight.allCases.filter(rights.contains).map(\.rawValue).joined(separator: " or ")
    return .notAllowed("the request needs a key with the right \(names); `pushfleet keys create --rights` makes one")
  }

  /// The codes in our own format, in Google's (the name of a google.rpc.Code), in OAuth's, and in that of the Instance ID service,
  /// which has none for some faults.
  var code: (own: String, google: String, oauth: String, instance: String?) {
    switch status {
    case 401: ("Unauthorized", "UNAUTHENTICATED", "invalid_grant", "Unauthorized")
    case 403: ("NotAllowed", "PERMISSION_DENIED", "invalid_request", self == .foreign ? nil : "PERMISSION_DENIED")
    case 404: ("NotFound", "NOT_FOUND", "invalid_request", "NOT_FOUND")
    case 429: ("TooManyRequests", "RESOURCE_EXHAUSTED", "temporarily_unavailable", "RESOURCE_EXHAUSTED")
    case 503: ("Unavailable", "UNAVAILABLE", "temporarily_unavailable", "Unavailable")
    default:
      ("InvalidParameters", "INVALID_ARGUMENT", self == .badGrant ? "unsupported_grant_type" : "invalid_request", nil)
    }
  }
}

/// The error format of an HTTP interface.
enum ErrorFormat {
  /// GCM and FCM legacy: HTML for errors about keys and methods, one line of text for others.
  case legacy
  /// The Instance ID service and device groups: `{"error":…}`.
  case instance
  /// Google's APIs: `{"error":{code, message, status}}`.
  case google
  /// OAuth's token endpoint: `{"error":…,"error_description":…}` (RFC 6749 §5.2).
  case oauth
  /// Pushfleet's own format: `{"error":…,"reason":…}`.
  case own
  /// gorush: `{"code":…,"message":…}`.
  case gorush

  func answer(_ fault: Fault) -> HTTPAnswer {
    switch self {
    case .legacy: legacy(fault)
    case .instance: .instance(fault.status, fault.code.instance ?? fault.words, headers: fault.headers)
    case .google:
      .google(
        fault.status, fault.code.google, fault.words, fcmCode: [429: "QUOTA_EXCEEDED", 503: "UNAVAILABLE"][fault.status],
        headers: fault.headers)
    case .oauth:
      .json(
        fault == .wrongKey ? 400 : fault.status, headers: fault.headers,
        ["error": fault.code.oauth, "error_description": fault.words])
    case .gorush: .gorush(fault.status, fault.words, headers: fault.headers)
    case .own: .own(fault == .reused ? 409 : fault.status, fault.code.own, fault.words, headers: fault.headers)
    }
  }

  // MARK: legacy

  private func legacy(_ fault: Fault) -> HTTPAnswer {
    switch fault.status {
    case 401: Self.page(401, fault == .noKey ? "Unauthorized" : "INVALID_KEY", fault)
    case 403 where fault != .foreign: Self.page(401, "INVALID_KEY_TYPE", fault)
    case 405: Self.page(405, fault.words, fault)
    default: .text(fault.status, fault.words + "\n", headers: fault.headers)
    }
  }

  private static func page(_ status: Int, _ words: String, _ fault: Fault) -> HTTPAnswer {
    HTTPAnswer(
      status: status, contentType: "text/html; charset=UTF-8", headers: fault.headers,
      body: """
        <HTML>
        <HEAD>
        <TITLE>\(words)</TITLE>
        </HEAD>
        <BODY BGCOLOR="#FFFFFF" TEXT="#000000">
        <H1>\(words)</H1>
        <H2>Error \(status)</H2>
        </BODY>
        </HTML>

        """)
  }
}

extension HTTPAnswer {
  static func json(_ status: Int, headers: [String: String] = [:], _ object: JSONObject) -> HTTPAnswer {
    json(status, headers: headers, line: object.line)
  }

  /// - Parameter line: a JSON object.
  static func json(_ status: Int, headers: [String: String] = [:], line: [UInt8]) -> HTTPAnswer {
    HTTPAnswer(status: status, contentType: "application/json; charset=UTF-8", headers: headers, body: line)
  }

  /// An error in ``ErrorFormat/google`` (AIP-193).
  /// - Parameters:
  ///   - code: the name of a google.rpc.Code.
  ///   - fcmCode: FCM's error code, if there is one.
  ///   - field: the wrong field.
  static func google(
    _ status: Int, _ code: String, _ message: String, fcmCode: String? = nil, field: String? = nil,
    headers: [String: String] = [:]
  ) -> HTTPAnswer {
    var details: [JSONObject] = []
    if let fcmCode {
      details.append(["@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": fcmCode])
    }
    if let field {
      let violations: [JSONObject] = [["field": field, "description": message]]
      details.append(["@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations])
    }
    let error: JSONObject = [
      "code": status, "message": message, "status": code, "details": JSONOptional(details.isEmpty ? nil : details),
    ]
    return json(status, headers: headers, ["error": error])
  }

  /// An error in ``ErrorFormat/instance``.
  static func instance(_ status: Int, _ word: String, headers: [String: String] = [:]) -> HTTPAnswer {
    json(status, headers: headers, ["error": word])
  }

  /// An error in ``ErrorFormat/gorush``.
  static func gorush(_ status: Int, _ message: String, headers: [String: String] = [:]) -> HTTPAnswer {
    json(status, headers: headers, ["code": status, "message": message])
  }

  /// An error in ``ErrorFormat/own``.
  static func own(_ status: Int, _ error: String, _ reason: String, headers: [String: String] = [:]) -> HTTPAnswer {
    json(status, headers: headers, ["error": error, "reason": reason])
  }
}
