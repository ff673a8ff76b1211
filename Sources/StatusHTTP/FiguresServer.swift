import Reactor

/// Serves metrics in Prometheus' text format, liveness and readiness of a process with one event loop. Confined to the loop's
/// thread, which answers all requests, so a blocked loop doesn't call itself alive.
///
/// If another process uses the port, the server tries again until the port is free.
package final class FiguresServer {
  private let endpoint: Endpoint
  private let loop: EventLoop
  private let answer: (_ path: String) -> HTTPAnswer
  private var server: HTTPServer?

  /// Seconds between attempts to open the port.
  private static let pause = 1.0

  /// - Parameters:
  ///   - home: the text of `/`.
  ///   - metrics: the text of `/metrics`.
  ///   - readiness: the answer for `/readyz`.
  ///   - waits: called at once if the port can't be opened for now.
  /// - Throws: if a later attempt would fail too.
  package init(
    _ endpoint: Endpoint, loop: EventLoop, home: String, metrics: @escaping () -> String,
    readiness: @escaping () -> HTTPAnswer, waits: (HTTPServerError) -> Void
  ) throws(HTTPServerError) {
    self.endpoint = endpoint
    self.loop = loop
    answer = { path in
      switch path {
      case "/": .text(200, home)
      case "/metrics": HTTPAnswer(status: 200, contentType: "text/plain; version=0.0.4", body: metrics())
      case "/livez": .text(200, "alive\n")
      case "/readyz": readiness()
      default: .text(404, "there are /, /metrics, /livez and /readyz\n")
      }
    }
    do throws(HTTPServerError) { try open() } catch {
      guard error.isPassing else { throw error }
      waits(error)
      openLater()
    }
  }

  private func open() throws(HTTPServerError) {
    let side = LoopSide<FiguresServer>(loop.mailbox)
    side.handler = self
    server = try HTTPServer(host: endpoint.host, port: endpoint.port) { path, _, reply in
      side.pass(reply) { reply.send($0.answer(path)) }
    }
  }

  private func openLater() {
    loop.schedule(after: Self.pause) { [weak self] in
      do { try self?.open() } catch { self?.openLater() }
    }
  }

  /// Ends connections that are too slow. Call about once a second.
  package func lookAround() { server?.endSlow() }
  package func stop() { server?.stop() }
}
