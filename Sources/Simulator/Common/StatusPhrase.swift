/// The names of statuses (RFC 9110 §15).
enum StatusPhrase {
  static func of(_ status: Int) -> String { names[status] ?? "Status \(status)" }

  private static let names = [
    200: "OK", 201: "Created", 202: "Accepted", 301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect",
    308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 410: "Gone", 411: "Length Required", 413: "Content Too Large",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error", 502: "Bad Gateway",
    503: "Service Unavailable", 504: "Gateway Timeout", 507: "Insufficient Storage",
  ]
}
