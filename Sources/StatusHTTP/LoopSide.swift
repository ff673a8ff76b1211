import Reactor

/// Passes requests of an HTTP server's thread to the object on the loop that answers them.
package final class LoopSide<Handler: AnyObject>: @unchecked Sendable {
  // Used on the loop's thread only: set there, and read there and in mailbox messages.
  package weak var handler: Handler?
  private let mailbox: Mailbox

  package init(_ mailbox: Mailbox) { self.mailbox = mailbox }

  /// For the server's thread: has the request answered on the loop's thread, or answers that the server is stopping.
  package func pass(_ reply: HTTPReply, to work: @escaping @Sendable (Handler) -> Void) {
    let isTaken = mailbox.post { [self] _ in pass(here: reply, to: work) }
    if !isTaken { reply.send(HTTPServer.stopping) }
  }

  /// For the loop's thread.
  package func pass(here reply: HTTPReply, to work: (Handler) -> Void) {
    guard let handler else { return reply.send(HTTPServer.stopping) }
    work(handler)
  }

  /// For the server's thread: a notice without an answer. It is lost after the loop has ended.
  package func note(_ note: @escaping @Sendable (Handler) -> Void) { _ = mailbox.post { [self] _ in self.note(here: note) } }

  /// For the loop's thread.
  package func note(here note: (Handler) -> Void) { if let handler { note(handler) } }
}
