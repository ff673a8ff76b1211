import StatusHTTP

/// The page at `/` of the metrics address: a self-contained document that polls `/status.json`.
enum DashboardPage {
  /// `{{mark}}` is replaced by the nonce of the answer's policy.
  static let html = String(decoding: PackageResources.dashboard_html, as: UTF8.self)

  static func answer() -> HTTPServer.Answer {
    // The nonce is new for each answer, so only the page's own scripts and styles are accepted.
    var random = SystemRandomNumberGenerator()
    let mark = String(random.next(), radix: 36) + String(random.next(), radix: 36)
    let policy =
      "default-src 'none'; script-src 'nonce-\(mark)'; style-src 'nonce-\(mark)'; connect-src 'self'; img-src data:; "
      + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    let headers = [
      "Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
      "X-Content-Type-Options": "nosniff",
    ]
    return .init(
      status: 200, contentType: "text/html; charset=utf-8", headers: headers, body: html.replacing("{{mark}}", with: mark))
  }
}
