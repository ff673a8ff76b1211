import Testing
import Wire

@Suite("A tally")
struct TallyTests {
  @Test("keeps an amount for each key, and their total; a key whose amount is 0 takes no room")
  func amounts() {
    var tally = Tally<String>()
    #expect(tally["a"] == 0 && tally.total == 0 && tally.keys == 0)
    tally.add(to: "a")
    tally.add(5, to: "a")
    tally.add(2, to: "b")
    #expect(tally["a"] == 6 && tally["b"] == 2 && tally.total == 8 && tally.keys == 2)
    tally.remove(6, from: "a")
    tally.remove(from: "b")
    #expect(tally["a"] == 0 && tally["b"] == 1 && tally.total == 1 && tally.keys == 1)
  }

  @Test("takes an amount of nothing for none")
  func nothing() {
    var tally = Tally<Int>()
    tally.add(0, to: 1)
    #expect(tally.keys == 0 && tally.total == 0)
  }
}
