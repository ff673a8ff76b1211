import DeviceRegistry
import PushCore
import StatusHTTP

/// `GET /pages/<name>`: content that was too large for a push (rule UP-21), for anybody who knows its name.
enum ContentPages {
  /// Unknown, expired and invalid names have the same answer.
  static func take(_ call: HTTPCall) {
    let name = call.path[1]
    guard ContentPage.isName(name) else { return call.answer(missing) }
    let question = RegistryCall.read { try $0.content(ofPage: name, now: $1) }
    call.ask(question, orElse: "the pages can't be read for now") { content in
      call.answer(content.map { answer(200, page($0)) } ?? missing)
    }
  }

  private static let missing = answer(
    404, document(Array("<p>This page is not here, or not here any more.</p>".utf8)))

  /// Content that begins with `<` is an HTML document. Other content is shown as plain text.
  static func page(_ content: [UInt8]) -> [UInt8] {
    let start = content.drop { $0 == 0x20 || (0x09...0x0D).contains($0) }
    guard start.first != UInt8(ascii: "<") else { return content }
    var text = Array("<pre>".utf8)
    for byte in content {
      switch byte {
      case UInt8(ascii: "&"): text += Array("&amp;".utf8)
      case UInt8(ascii: "<"): text += Array("&lt;".utf8)
      case UInt8(ascii: ">"): text += Array("&gt;".utf8)
      default: text.append(byte)
      }
    }
    return document(text + Array("</pre>".utf8))
  }

  private static func document(_ body: [UInt8]) -> [UInt8] { head + body + Array("\n".utf8) }

  private static let head = Array(
    """
    <!DOCTYPE html>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="robots" content="noindex">
    <title></title>
    <style>pre { font: inherit; white-space: pre-wrap; overflow-wrap: anywhere }</style>

    """.utf8)

  private static func answer(_ status: Int, _ body: [UInt8]) -> HTTPAnswer {
    HTTPAnswer(status: status, contentType: "text/html; charset=utf-8", headers: headers, body: body)
  }

  /// The content comes from the application, not from us. It runs no script, sends no form, can't be framed, loads nothing but
  /// images, and sends no referrer.
  private static let headers = [
    "Content-Security-Policy":
      "default-src 'none'; img-src https: data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
      + "frame-ancestors 'none'; sandbox allow-popups allow-popups-to-escape-sandbox",
    "X-Robots-Tag": "noindex, nofollow, noarchive",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
  ]
}
