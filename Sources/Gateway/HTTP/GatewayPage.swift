import Reactor
import StatusHTTP

/// The page at `/` of the metrics address. It needs no script: the browser reloads it every few seconds.
enum GatewayPage {
  static func answer(_ context: GatewayContext) -> HTTPAnswer {
    var random = SystemRandomNumberGenerator()
    let mark = String(random.next(), radix: 36)
    let headers = [
      "Content-Security-Policy":
        "default-src 'none'; style-src 'nonce-\(mark)'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff", "Refresh": "5",
    ]
    return HTTPAnswer(
      status: 200, contentType: "text/html; charset=utf-8", headers: headers,
      body: html(context).replacing("{{mark}}", with: mark))
  }

  private static func html(_ context: GatewayContext) -> String {
    let isReady = context.broker.isReady
    let rows = context.figures.counts(waiting: context.broker.waiting)
      .map { "<tr><th>\($0.what)</th><td>\($0.count)</td></tr>" }.joined(separator: "\n")
    return """
      <!doctype html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>pushfleet gateway</title>
      <style nonce="{{mark}}">
      body { font: 15px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 2rem auto; padding: 0 1rem; }
      table { border-collapse: collapse; width: 100%; }
      th { font-weight: normal; text-align: left; } td { text-align: right; font-variant-numeric: tabular-nums; }
      th, td { padding: .3rem 0; border-bottom: 1px solid #8884; }
      </style>
      </head>
      <body>
      <h1>pushfleet gateway</h1>
      <p>\(isReady ? "Ready: the broker accepts messages." : "Not ready: the broker can't be reached or accepts no messages at the moment.")</p>
      <table>
      \(rows)
      </table>
      <p>Gateway process \(ThisProcess.pid); totals since its start. <a href="/metrics">/metrics</a> <a href="/livez">/livez</a> <a href="/readyz">/readyz</a></p>
      </body>
      </html>

      """
  }
}
