import Reactor
import StatusHTTP

/// Whoever answers an HTTP server's requests on the loop, as the server's thread knows it.
final class LoopSide<Desk: AnyObject>: @unchecked Sendable {
  // On the loop's thread only: whoever sets it lives there, and it is read there and in letters of the mailbox.
  weak var desk: Desk?
  private let mailbox: Mailbox

  init(_ mailbox: Mailbox) { self.mailbox = mailbox }

  /// From the server's thread: has the request answered on the loop's, or says that nobody is there any more.
  func pass(_ reply: HTTPReply, to work: @escaping @Sendable (Desk) -> Void) {
    let isTaken = mailbox.post { [self] _ in pass(here: reply, to: work) }
    if !isTaken { reply.send(Self.stopping) }
  }

  /// From the loop's own thread.
  func pass(here reply: HTTPReply, to work: (Desk) -> Void) {
    guard let desk else { return reply.send(Self.stopping) }
    work(desk)
  }

  /// From the server's thread: something that nobody waits for. A loop that has ended counts nothing any more.
  func note(_ note: @escaping @Sendable (Desk) -> Void) { _ = mailbox.post { [self] _ in self.note(here: note) } }

  /// From the loop's own thread.
  func note(here note: (Desk) -> Void) { if let desk { note(desk) } }

  private static var stopping: HTTPAnswer { .unavailable("the gateway is stopping") }
}
