/// The pools of a request's recipients, without duplicates. Most requests have one pool, so no array is needed.
struct PoolNumbers {
  private var first = -1
  private var others: [Int] = []

  var isEmpty: Bool { first < 0 }

  mutating func insert(_ pool: Int) {
    if first < 0 { first = pool } else if pool != first, !others.contains(pool) { others.append(pool) }
  }

  @inline(__always)
  func forEach(_ body: (Int) -> Void) {
    if first >= 0 { body(first) }
    for pool in others { body(pool) }
  }

  func contains(where isMeant: (Int) -> Bool) -> Bool { first >= 0 && isMeant(first) || others.contains(where: isMeant) }
}
