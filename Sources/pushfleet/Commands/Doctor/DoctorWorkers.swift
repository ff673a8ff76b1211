import Settings

/// Provider problems that workers report. The doctor's own push may succeed all the same, from another address or topic.
enum DoctorWorkers {
  static func look(_ configuration: Configuration) throws -> [Finding] {
    var workers: [WorkerAnswer] = []
    let watch = try FleetWatch(configuration, every: nil) { workers = $0.workers }
    do { try watch.run() } catch let failure as CommandFailure where failure.status != .interrupted { return [] }
    return FleetPools(workers).rows.filter { $0.isInTrouble > 0 }.map { pool in
      let remedy = pool.remedy.isEmpty ? nil : pool.remedy
      return Finding(.warning, "workers", "\(pool.name) is in trouble: \(pool.reason)", remedy)
    }
  }
}
