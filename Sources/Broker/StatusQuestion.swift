/// The question of `pushfleet status` to all workers of a fleet. Workers that don't know the difference answer both alike.
package enum StatusQuestion {
  package static let plain = Array("status".utf8)
  /// The answer names more pools than those in trouble and a few others.
  package static let pools = Array("status pools".utf8)
}
