import StatusHTTP

/// The page at `/` of the figures' address: one document without anything from elsewhere, which asks for `/status.json` again and again.
enum DashboardPage {
  /// `{{mark}}` stands for what the policy of an answer allows.
  static let html = String(decoding: PackageResources.dashboard_html, as: UTF8.self)

  static func answer() -> HTTPServer.Answer {
    // Only what stands in the page itself, marked anew each time, is obeyed.
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
